# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Batches whose random numbers depend on their position in a run only."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from torch.utils.data import DataLoader

from mmclca.utils.random_state import seed_random_state


class SeededBatch(list):
    """Image positions that seed the process which iterates over them.

    A data loader iterates over them where it reads the images: in a worker,
    or without workers in the process of the training.
    """

    def __init__(self, positions: list[int], *numbers: int):
        super().__init__(positions)
        self.numbers = numbers

    def __iter__(self) -> Iterator[int]:
        seed_random_state(*self.numbers)
        return super().__iter__()

    def __reduce__(self):  # on the way to a worker, nothing is seeded
        return type(self), (self[:], *self.numbers)


class SeededBatches:
    """Batch sampler of a data loader whose batches seed their reader.

    Args:
        loader (DataLoader): Its batch sampler is replaced.
        seed (int): Seed of the run.
        rank (int): Rank of this process.

    Attributes:
        iter (int): Iteration of the next batch.
        skipped (int): Batches to skip in the next pass over the data.
        passes (int): Passes before the present one.
        start (int): Iteration of the first batch in this pass.
    """

    def __init__(self, loader: DataLoader, seed: int, rank: int):
        # torch declares it as optional and without a length
        self.batches: Any = loader.batch_sampler
        self.seed, self.rank = seed, rank
        self.iter = self.skipped = self.passes = self.start = 0
        vars(loader)['batch_sampler'] = self  # read-only as an attribute

    def __getattr__(self, name: str):
        return getattr(self.batches, name)

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[SeededBatch]:
        skipped, self.skipped = self.skipped, 0
        if not skipped and self.iter > self.start:  # the next pass
            self.passes, self.start = self.passes + 1, self.iter
        seed_random_state(self.seed, self.start)  # for the order
        for positions in islice(self.batches, skipped, None):
            yield SeededBatch(positions, self.seed, self.iter, 1 + self.rank)
            self.iter += 1
