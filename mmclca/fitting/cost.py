# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Cost per photo: selected model and full ViT."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from mmclca.benchmark.latency_table import (
    LatencyTable,
    hash_model,
    look_up_or_time,
)
from mmclca.benchmark.timing import (
    RUNTIMES,
    find_runtime,
    warn_if_torch_is_old,
)
from mmclca.errors import Error
from mmclca.evaluation.cost import count_config
from mmclca.utils.messages import warn
from mmclca.utils.provenance import machine_name

from .candidates import IMAGE_SIZES
from .cost_parts import PhotoCost
from .model_config import build_plain_config
from .plan import Plan


def compute_cost(plan: Plan) -> PhotoCost:
    """Count GMACs and parameters, and the GMACs of the full ViT.

    Latencies that this machine has measured before are added.
    """
    models = _list_models(plan)
    counts = [count_config(config) for config in models]
    cost = PhotoCost(
        gmacs=counts[0].flops / 1e9,
        gmacs_full=counts[-1].flops / 1e9,
        params=counts[0].params,
    )
    runtime = find_runtime(plan.options.runtime, plan.device)
    stored = LatencyTable.read(runtime, plan.device).milliseconds
    hashes = [hash_model(config) for config in models]
    if not stored.keys() >= {*hashes}:
        return cost
    return _add_latency(plan, cost, runtime, [stored[x] for x in hashes])


def measure_latency(plan: Plan, cost: PhotoCost) -> PhotoCost:
    """Add the latencies of the model and the full ViT to their cost.

    If the model cannot be exported, this is reported, and the latency is that
    of PyTorch, unless the runtime was chosen.
    """
    runtime = find_runtime(plan.options.runtime, plan.device)
    if plan.options.runtime is None:
        warn_if_torch_is_old(plan.device)
    models: dict[Hashable, dict[str, Any]] = dict(
        enumerate(_list_models(plan))
    )
    try:
        times, busy = look_up_or_time(models, runtime, plan.device)
    except (Error, ImportError) as error:
        if plan.options.runtime or runtime == 'pytorch':
            raise
        warn(f'latency is measured in PyTorch: {error}')
        runtime = 'pytorch'
        times, busy = look_up_or_time(models, runtime, plan.device)
    ordered = [times[number] for number in models]
    return _add_latency(plan, cost, runtime, ordered, busy)


def _add_latency(
    plan: Plan,
    cost: PhotoCost,
    runtime: str,
    times: Sequence[float],
    busy: str = '',
) -> PhotoCost:
    """Add the latencies of :func:`_list_models` and how they were measured."""
    return replace(
        cost,
        ms=times[0],
        ms_full=times[-1],
        runtime=RUNTIMES[runtime],
        busy=busy,
        machine=machine_name('cpu' if runtime == 'onnx' else plan.device),
    )


def _list_models(plan: Plan) -> list[dict[str, Any]]:
    """Return the model config and, for a ViT, the config of the full ViT."""
    models = [plan.config.model]
    if plan.variant.out_type:
        num_classes = len(plan.training_photos.classes)
        models.append(
            build_plain_config(plan.pretrained, max(IMAGE_SIZES), num_classes)
        )
    return models
