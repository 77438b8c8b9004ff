# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""One run of a grid."""

from dataclasses import dataclass

from mmclca.models import Variant

# nothing, the aggregation head, the cache, both
ABLATIONS = ('base', 'cla', 'clc', 'clca')
NONE = 'none'  # in place of the name of a method


@dataclass(frozen=True)
class Cell:
    """What one run of a grid trains."""

    dataset: str
    backbone: str
    method: str
    keep_rate: float
    size: int
    clca: str
    seed: int
    variant: str = ''

    @property
    def model(self) -> Variant:
        """What it makes of the model of its backbone."""
        return Variant(
            None if self.method == NONE else self.method,
            self.keep_rate,
            self.size,
            cache=self.clca in ('clc', 'clca'),
            cla=self.clca in ('cla', 'clca'),
        )

    @property
    def name(self) -> str:
        """Name of its result and folder, different for each cell."""
        parts = (
            f'{self.dataset}-{self.size}px',
            self.backbone,
            f'{self.method.lower()}-kr{100 * self.keep_rate:g}',
            self.clca,
            self.variant,
            f'seed{self.seed}',
        )
        return '_'.join(filter(None, parts))
