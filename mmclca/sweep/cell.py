# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""One run of a grid."""

from dataclasses import dataclass

from mmclca.models import Variant

# nothing, the aggregation head, the cache, both
ABLATIONS = ('base', 'cla', 'clc', 'clca')
NONE = 'none'  # in place of the name of a method


@dataclass(frozen=True)
class Cell:
    """What one run of a grid trains.

    Args:
        dataset (str): Name of the piece of its data set, see
            :func:`mmclca.sweep.compose.find`.
        backbone (str): Name of the piece of its model.
        method (str): Class name of the reducer, or ``NONE`` for all tokens,
            which is for backbones too whose tokens cannot be reduced.
        keep_rate (float): Its keep rate; 1 without one.
        size (int): Height and width of an image in pixels.
        clca (str): One of ``ABLATIONS``.
        seed (int): Seed of the run.
        variant (str): A word for options that set it apart from other cells.
            Defaults to '', none.
    """

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
