# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Throughput of candidates, compared with the first one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from mmclca.building import config_errors
from mmclca.errors import Error
from mmclca.evaluation.cost import count_config
from mmclca.utils.messages import warn

from . import steps
from .candidates import INT8, ONNX, Candidate

AT_ONCE = 6  # models in memory, besides the baseline
COLUMNS = (
    'model',
    'reduction',
    'runtime',
    'batch',
    'GMACs',
    'images/s',
    'speed-up',
    'quartiles',
)


@dataclass(frozen=True)
class Throughput:
    """Throughput of a candidate.

    Args:
        model (str): Title of the candidate.
        reduction (str): Name of its variant.
        runtime (str): Its runtime.
        batch (int): Batch size.
        gmacs (float): Multiply-accumulates per image in billions, without
            fusion.
        images_per_second (float): Median over the rounds.
        speed_up (float): Time of the baseline divided by the time of the
            candidate, median over the rounds.
        quartiles (tuple[float, float]): First and third quartile of
            ``speed_up``.
    """

    model: str
    reduction: str
    runtime: str
    batch: int
    gmacs: float
    images_per_second: float
    speed_up: float
    quartiles: tuple[float, float]

    def format_cells(self) -> list[str]:
        """Format the values for a table with the titles ``COLUMNS``."""
        low, high = self.quartiles
        return [
            self.model,
            self.reduction,
            self.runtime,
            str(self.batch),
            f'{self.gmacs:.2f}',
            f'{self.images_per_second:.4g}',
            f'{self.speed_up:.2f}',
            f'{low:.2f}-{high:.2f}',
        ]


def measure_throughput(
    candidates: Sequence[Candidate],
    setting: steps.Setting,
    batches: Sequence[int],
    rounds: int = 7,
) -> Iterator[Throughput]:
    """Time candidates in turn, in groups that include the first one.

    Args:
        candidates (Sequence[Candidate]): The models; the first is the
            baseline.
        setting (Setting): Measurement conditions.
        batches (Sequence[int]): Batch sizes, in place of that in ``setting``.
        rounds (int): Timed runs per model. Defaults to 7.

    Returns:
        Iterator[Throughput]: One record per batch size and candidate, as soon
        as it is measured. A candidate that exceeds the GPU memory is left out
        with a warning.

    Raises:
        Error: At once, if a config is wrong, or a runtime does not support
            the setting; later, if the baseline exceeds the GPU memory.
    """
    _check_runtimes(candidates, setting)
    gmacs = {}
    for candidate in candidates:
        with config_errors(candidate.title):
            gmacs[candidate] = count_config(candidate.model).flops / 1e9
    return _measure_groups(candidates, setting, batches, rounds, gmacs)


def _check_runtimes(
    candidates: Sequence[Candidate], setting: steps.Setting
) -> None:
    """Refuse ONNX Runtime with settings of PyTorch."""
    if not any(candidate.runtime in (ONNX, INT8) for candidate in candidates):
        return
    settings = dict(
        train=setting.train,
        amp=setting.amp is not None,
        compile_mode=setting.compile_mode is not None,
        device=setting.device != 'cpu',
    )
    for name, is_set in settings.items():
        if is_set:
            raise Error(
                'ONNX Runtime measures float32 inference on the CPU: omit '
                f'`{name}`'
            )


def _measure_groups(
    candidates: Sequence[Candidate],
    setting: steps.Setting,
    batches: Sequence[int],
    rounds: int,
    gmacs: Mapping[Candidate, float],
) -> Iterator[Throughput]:
    """Time ``AT_ONCE`` models with the baseline, which is yielded once."""
    baseline, *compared = candidates
    for batch in dict.fromkeys(batches):
        batch_setting = replace(setting, batch=batch)
        for start in range(0, max(len(compared), 1), AT_ONCE):
            group = [baseline, *compared[start : start + AT_ONCE]]
            torch.compiler.reset()  # its number of models is limited
            seconds = steps.interleaved_seconds(
                {x: steps.make_step(x, batch_setting) for x in group},
                batch_setting,
                rounds,
            )
            if baseline not in seconds:
                raise Error(
                    'the baseline does not fit into memory; reduce `batch`'
                )
            for candidate in group[1:] if start else group:
                times = seconds.get(candidate)
                if times is None:
                    name = f'{candidate.title}, {candidate.reduction}'
                    warn(f'{name}: out of memory')
                    continue
                ratios = np.divide(seconds[baseline], times)
                low, middle, high = np.percentile(ratios, [25, 50, 75])
                yield Throughput(
                    model=candidate.title,
                    reduction=candidate.reduction,
                    runtime=candidate.runtime,
                    batch=batch,
                    gmacs=gmacs[candidate],
                    images_per_second=batch / float(np.median(times)),
                    speed_up=float(middle),
                    quartiles=(float(low), float(high)),
                )
