# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
import torch

from mmclca.evaluation.cost import Cost

from .candidates import Candidate, Size, timm_vit
from .interleaved import clock_of, seconds_in_turns
from .memory import peak_memory
from .setting import Setting
from .steps import step_of


@dataclass
class Result:
    """What was measured of one model, and of timm's beside it.

    Args:
        candidate (Candidate): The model.
        cost (Cost): Its multiply-accumulates and tokens.
        seconds (list[float]): Of each round.
        batch (int): Images in a pass.
        memory (int, optional): Bytes at the peak of a pass.
        baseline (Result, optional): timm's, timed in the same rounds.
            Defaults to None, this is timm's.
    """

    candidate: Candidate
    cost: Cost
    seconds: list[float]
    batch: int
    memory: int | None = None
    baseline: 'Result | None' = None

    @property
    def images_per_second(self) -> float:
        """Median speed."""
        return self.batch / median(self.seconds)

    @property
    def speed_up(self) -> list[float]:
        """Quartiles, the median in the middle, of the rounds' ratios."""
        plain = (self.baseline or self).seconds
        return np.percentile(np.divide(plain, self.seconds), [25, 50, 75])

    @property
    def gmacs_ratio(self) -> float:
        """How many times fewer multiply-accumulates than timm's."""
        return (self.baseline or self).cost.flops / self.cost.flops

    @property
    def efficiency(self) -> float:
        """How much of what the multiply-accumulates promise is there."""
        return self.speed_up[1] / self.gmacs_ratio

    @property
    def memory_ratio(self) -> float | None:
        """Peak memory as a share of timm's."""
        if self.memory is None:
            return None
        return self.memory / (self.baseline or self).memory

    @property
    def tokens(self) -> str:
        """Tokens that leave the reducing layers and the last one."""
        layers = (*self.candidate.reduce_at, -1)
        return '/'.join(str(self.cost.tokens[layer]) for layer in layers)

    def record(self) -> dict:
        """All numbers by name, of plain types."""
        candidate, size = self.candidate, self.candidate.size
        low, middle, high = map(float, self.speed_up)
        return dict(
            model=candidate.name or size.name,
            method=candidate.method,
            keep_rate=candidate.keep_rate,
            clca=candidate.clca,
            pixels=size.pixels,
            tokens=self.tokens,
            gmacs=self.cost.flops / 1e9,
            gmacs_of_distances=self.cost.distances / 1e9,
            params=self.cost.params,
            images_per_second=self.images_per_second,
            speed_up=middle,
            speed_up_quartile_1=low,
            speed_up_quartile_3=high,
            gmacs_ratio=self.gmacs_ratio,
            efficiency=self.efficiency,
            memory_mib=self.memory and self.memory / 2**20,
            memory_ratio=self.memory_ratio,
        )


def num_passes(
    num_candidates: int,
    rounds: int,
    warm_up: int,
    at_once: int,
    with_memory: bool,
) -> int:
    """How often :func:`compare` calls its ``after_each``."""
    num_groups = max(1, -(-num_candidates // at_once))
    timed = (num_candidates + num_groups) * (rounds + warm_up)
    return timed + with_memory * (num_candidates + 1)


def compare(
    size: Size,
    candidates: list[Candidate],
    setting: Setting,
    rounds: int,
    warm_up: int,
    at_once: int,
    with_memory: bool,
    after_each: Callable[[], object],
    left_out: Callable[[Candidate], object],
) -> Iterator[Result]:
    """Measure models of one size, and timm's of that size in turns with them.

    Args:
        size (Size): The size, for timm's model; its result comes first.
        candidates (list[Candidate]): The other models.
        setting (Setting): What all are put through.
        rounds (int): Timed passes of each model.
        warm_up (int): Passes before these that are not counted.
        at_once (int): Models that are in memory and take turns with timm's.
            One of timm's passes is timed for each of their groups and rounds.
        with_memory (bool): Whether to measure peaks of memory.
        after_each (Callable): Called after each pass that is timed, and after
            each measurement of memory.
        left_out (Callable): Called with each model that runs out of a GPU's
            memory, of which there is no result. Where timm's does, those in
            turns with it have none either.
    """
    plain = timm_vit(size)
    peaks = dict.fromkeys((plain, *candidates))
    if with_memory:
        peaks = _peaks(peaks, setting, after_each, left_out)
    if plain not in peaks:
        return
    candidates = [one for one in candidates if one in peaks]
    for start in range(0, max(1, len(candidates)), at_once):
        group = [plain, *candidates[start : start + at_once]]
        seconds = _seconds(group, setting, rounds, warm_up, after_each)
        for one in group:
            if not {plain, one} <= set(seconds):
                left_out(one)
        if plain in seconds:
            results = _results(seconds, peaks, setting.batch)
            yield from results[start > 0 :]  # timm's once


def _peaks(everyone, setting, after_each, left_out):
    peaks = {}
    for one in everyone:
        try:
            peaks[one] = peak_memory(one, setting)
        except torch.OutOfMemoryError:
            left_out(one)
        after_each()
    return peaks


def _results(seconds, peaks, batch):
    plain, *others = (
        Result(one, one.cost(), own, batch, peaks[one])
        for one, own in seconds.items()
    )
    return [plain, *(replace(other, baseline=plain) for other in others)]


def _seconds(group, setting, rounds, warm_up, after_each):
    steps = {one: step_of(one, setting) for one in group}
    clock = clock_of(setting)
    seconds = seconds_in_turns(steps, clock, rounds, warm_up, after_each)
    torch.compiler.reset()  # else it gives up after a few models of a kind
    return seconds
