# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from statistics import median

import numpy as np
import torch

from mmclca.evaluation.cost import Cost
from mmclca.utils.messages import track, warn

from .candidates import Candidate
from .memory import peak_memory
from .steps import Setting, interleaved_seconds, step_of

# models in memory, interleaved with the baseline; torch.compile gives up
# after eight models of a kind, timm's among them
AT_ONCE = 6
Plan = dict[Candidate, list[Candidate]]


@dataclass
class Result:
    """The measurements of one model, and of the baseline beside it.

    Args:
        candidate (Candidate): The model.
        cost (Cost): Its multiply-accumulates and tokens.
        seconds (list[float]): Of each round.
        batch (int): Images in a pass.
        memory (int, optional): Bytes at the peak of a pass.
        baseline (Result, optional): That of the baseline, timed in the same
            rounds. Defaults to None, this is the baseline.
    """

    candidate: Candidate
    cost: Cost
    seconds: list[float]
    batch: int
    memory: int | None = None
    baseline: 'Result | None' = None

    @property
    def speed_up(self) -> list[float]:
        """Quartiles, the median in the middle, of the rounds' ratios."""
        plain = (self.baseline or self).seconds
        return np.percentile(np.divide(plain, self.seconds), [25, 50, 75])

    @property
    def gmacs_ratio(self) -> float:
        """How many times fewer multiply-accumulates than the baseline."""
        return (self.baseline or self).cost.flops / self.cost.flops

    @property
    def tokens(self) -> str:
        """Tokens that leave the reducing layers and the last one, where they
        can be followed."""
        if not self.cost.tokens:
            return ''
        layers = (*self.candidate.reduce_at, -1)
        return '/'.join(str(self.cost.tokens[layer]) for layer in layers)

    def record(self) -> dict:
        """Return all numbers by name, of plain types."""
        candidate, size = self.candidate, self.candidate.size
        plain = self.baseline or self
        low, middle, high = map(float, self.speed_up)
        return dict(
            model=candidate.title,
            method=candidate.method,
            keep_rate=candidate.variant.rates,
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
    """Measure models, and a baseline interleaved with them.

    Args:
        plan (dict[Candidate, list[Candidate]]): Models beside each baseline,
            whose result comes first.
        setting (Setting): What all are put through.
        rounds (int): Timed passes of each model.
        warm_up (int): Passes before these that are not counted.
        with_memory (bool): Whether to measure peaks of memory.
        missing (list[str]): Names of the models that run out of a GPU's
            memory are added: there is no result of them. Where the baseline
            does, there is none of those interleaved with it either.
    """
    measured, peak = set(), cache(peak_memory)
    for group in track([*_groups(plan)], 'Timing groups of models'):
        steps = {one: step_of(one, setting) for one in group}
        seconds = interleaved_seconds(steps, setting, rounds, warm_up)
        del steps  # their models, before others are built
        torch.compiler.reset()  # else it gives up after a few of a kind
        plain = None
        for one in group:
            if not {group[0], one} <= seconds.keys():
                _leave_out(one, missing)
                continue
            memory = peak(one, setting) if with_memory else None
            own = seconds[one], setting.batch, memory, plain
            result = Result(one, one.cost(), *own)
            plain = plain or result
            if one not in measured:  # the baseline once
                measured.add(one)
                yield result


def _groups(plan: Plan) -> Iterator[list[Candidate]]:
    """Models that are in memory at once, the baseline first."""
    for plain, candidates in plan.items():
        for start in range(0, max(1, len(candidates)), AT_ONCE):
            yield [plain, *candidates[start : start + AT_ONCE]]


def _leave_out(candidate: Candidate, missing: list[str]) -> None:
    place = f'{candidate.title}, {candidate.size.pixels} px'
    missing.append(f'{candidate.label} ({place})')
    warn(f'out of memory: {missing[-1]}')
