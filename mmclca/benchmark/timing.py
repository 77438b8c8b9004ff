# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Latency in the deployment runtime: ONNX Runtime or PyTorch."""

import os
from collections.abc import Hashable, Mapping
from importlib.util import find_spec
from statistics import median

import torch

from mmclca.utils.extras import require
from mmclca.utils.messages import track, warn
from mmclca.utils.provenance import load_averages
from mmclca.utils.torch_versions import EXPORTS_LOOPS, has_torch, require_torch

from .candidates import ONNX, PYTORCH, Candidate
from .steps import Setting, interleaved_seconds, make_step

RUNTIMES = dict(onnx='ONNX Runtime', pytorch='PyTorch')
NEEDED = 'onnx', 'onnxscript', 'onnxruntime'
ROUNDS = 20
# a machine is busy above this ratio of median to minimum time, or above this
# load per core
BUSY = 1.25


def find_runtime(runtime: str | None, device: str) -> str:
    """Select the runtime, a key in ``RUNTIMES``.

    The default is ONNX Runtime if installed, and PyTorch on a GPU, or if torch
    is too old to export every model.

    Raises:
        ImportError: If ``runtime`` is 'onnx', and a package is missing or
            torch is too old.
    """
    if runtime == 'onnx':
        require(*NEEDED, extra='deploy')
        require_torch(
            EXPORTS_LOOPS, 'latency in ONNX Runtime', 'measure it in PyTorch'
        )
    if runtime is not None:
        return runtime
    is_usable = _has_onnx_runtime(device) and has_torch(EXPORTS_LOOPS)
    return 'onnx' if is_usable else 'pytorch'


def warn_if_torch_is_old(device: str) -> None:
    """Warn if only the version of torch rules out ONNX Runtime."""
    if _has_onnx_runtime(device) and not has_torch(EXPORTS_LOOPS):
        warn(
            'latency is measured in PyTorch: ONNX Runtime needs torch '
            f'{EXPORTS_LOOPS} or later, and torch {torch.__version__} is '
            'installed'
        )


def _has_onnx_runtime(device: str) -> bool:
    on_cpu = torch.device(device).type == 'cpu'
    return on_cpu and all(map(find_spec, NEEDED))


def time_models(
    models: Mapping[Hashable, dict],
    runtime: str,
    device: str,
    rounds: int = ROUNDS,
) -> tuple[dict[Hashable, float], str]:
    """Measure the latency of one image with all PyTorch threads.

    ``models`` maps names to classifier configs. Returns the minimum of the
    interleaved repeats in milliseconds per model, which other processes
    disturb least, and the text of :func:`busy_note`.
    """
    onnx = runtime == 'onnx'
    setting = Setting('cpu' if onnx else device, torch.get_num_threads(), 1)
    steps = {
        name: make_step(
            Candidate(
                str(name), models[name], runtime=ONNX if onnx else PYTORCH
            ),
            setting,
        )
        for name in track([*models], 'Measuring latency')
    }
    seconds = interleaved_seconds(steps, setting, rounds)
    spread = max(median(passes) / min(passes) for passes in seconds.values())
    load = load_averages()[0] / os.cpu_count()  # over one minute
    times = {name: 1e3 * min(passes) for name, passes in seconds.items()}
    return times, busy_note(spread, load)


def busy_note(spread: float, load: float) -> str:
    """Describe a busy machine: 'machine busy (load 2.0 per core), ...'.

    The text is empty if it is not busy.
    ``spread`` is the median time divided by the minimum time, and ``load``
    the load average per core.
    """
    if max(spread, load) <= BUSY:
        return ''
    reason = f'load {load:.1f} per core'
    if spread > BUSY:
        reason = f'the median run took {spread:.1f} times the fastest'
    return f'machine busy ({reason}), latency may be overestimated'
