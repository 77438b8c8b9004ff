# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from statistics import median

import numpy as np
import torch

from mmclca.benchmark import Setting, interleaved_seconds
from mmclca.benchmark.steps import make_step
from mmclca.evaluation.cost import Cost
from mmclca.utils.messages import track, warn

from .candidates import SizedCandidate
from .memory import peak_memory

# models in memory at the same time; torch.compile stops after eight models
# of one class, including the baseline
AT_ONCE = 6
Plan = dict[SizedCandidate, list[SizedCandidate]]


@dataclass
class Result:
    """Measurements of one model and its baseline.

    Args:
        candidate (SizedCandidate): The model.
        cost (Cost): Multiply-accumulates and tokens.
        seconds (list[float]): Seconds per round.
        batch (int): Batch size.
        memory (int, optional): Peak memory in bytes. Defaults to None.
        baseline (Result, optional): Result of the baseline, timed in the same
            rounds. Defaults to None if this model is the baseline.
    """

    candidate: SizedCandidate
    cost: Cost
    seconds: list[float]
    batch: int
    memory: int | None = None
    baseline: 'Result | None' = None

    @property
    def speed_up(self) -> list[float]:
        """Quartiles of the speed-up over the rounds, median second."""
        plain = (self.baseline or self).seconds
        return np.percentile(np.divide(plain, self.seconds), [25, 50, 75])

    @property
    def gmacs_ratio(self) -> float:
        """Baseline GMACs divided by the GMACs of this model."""
        return (self.baseline or self).cost.flops / self.cost.flops

    @property
    def tokens(self) -> str:
        """Token counts after the reducing layers and the last layer."""
        if not self.cost.tokens:
            return ''
        layers = (*self.candidate.reduce_at, -1)
        return '/'.join(str(self.cost.tokens[layer]) for layer in layers)

    def record(self) -> dict:
        """Return all numbers by name, ready for JSON."""
        candidate, size = self.candidate, self.candidate.size
        plain = self.baseline or self
        low, middle, high = map(float, self.speed_up)
        return dict(
            model=candidate.full_title,
            method=candidate.method,
            keep_rate=candidate.applied.rates,
            clca=candidate.clca,
            pixels=size.pixels,
            tokens=self.tokens,
            gmacs=self.cost.flops / 1e9,
            gmacs_of_distances=self.cost.distances / 1e9,
            params=self.cost.params,
            batch=self.batch,
            images_per_second=self.batch / median(self.seconds),
            speed_up=middle,
            speed_up_quartile_1=low,
            speed_up_quartile_3=high,
            gmacs_ratio=self.gmacs_ratio,
            efficiency=middle / self.gmacs_ratio,
            memory_mib=self.memory and self.memory / 2**20,
            memory_ratio=self.memory and self.memory / plain.memory,
            seconds=self.seconds,
        )


def compare(
    plan: Plan,
    setting: Setting,
    rounds: int,
    warm_up: int,
    with_memory: bool,
    missing: list[str],
) -> Iterator[Result]:
    """Measure models interleaved with their baselines.

    Args:
        plan (dict[SizedCandidate, list[SizedCandidate]]): Models for each
            baseline, whose result comes first.
        setting (Setting): Measurement conditions.
        rounds (int): Timed passes per model.
        warm_up (int): Untimed passes per model.
        with_memory (bool): Whether to measure peak memory.
        missing (list[str]): List to which models are added that exceed the
            GPU memory. If a baseline does, its group is skipped as well.

    Yields:
        Result: Measurements of one model.
    """
    measured, peak = set(), cache(peak_memory)
    for group in track([*_groups(plan)], 'Timing groups of models'):
        steps = {model: make_step(model, setting) for model in group}
        seconds = interleaved_seconds(steps, setting, rounds, warm_up)
        del steps  # free these models before the next are built
        torch.compiler.reset()  # the number of models per class is limited
        plain = None
        for model in group:
            if not {group[0], model} <= seconds.keys():
                title = f'{model.full_title}, {model.size.pixels} px'
                missing.append(f'{model.label} ({title})')
                warn(f'out of memory: {missing[-1]}')
                continue
            result = Result(
                candidate=model,
                cost=model.cost(),
                seconds=seconds[model],
                batch=setting.batch,
                memory=peak(model, setting) if with_memory else None,
                baseline=plain,
            )
            plain = plain or result
            if model not in measured:  # report the baseline once
                measured.add(model)
                yield result


def _groups(plan: Plan) -> Iterator[list[SizedCandidate]]:
    """Groups of models measured together, baseline first."""
    for plain, candidates in plan.items():
        for start in range(0, max(1, len(candidates)), AT_ONCE):
            yield [plain, *candidates[start : start + AT_ONCE]]
