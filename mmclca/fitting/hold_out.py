# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Photographs that a model is trained without, to see how good it is."""

from statistics import median

from mmclca.datasets.photographs import Photographs
from mmclca.datasets.units import Units

PARTS = 5
# fewer are no ground for an accuracy
LEAST, LEAST_A_CLASS = 200, 8


def hold_out(photographs: Photographs) -> tuple[list[int], list[int]]:
    """Positions of a fifth of the photographs, or a little more.

    Stratified, with groups kept together. Classes of one photograph, or one
    group, are all trained on.

    Args:
        photographs (Photographs): Those to learn from.

    Returns:
        tuple[list[int], list[int]]: To train on, and to hold out.
    """
    units = Units(photographs.labels, photographs.groups)
    train, test = next(iter(units.folds(PARTS, seed=0)))
    return train.tolist(), test.tolist()


def is_enough(photographs: Photographs) -> bool:
    """Whether those held out tell how good a trained model is.

    Args:
        photographs (Photographs): Those to learn from.
    """
    counts = photographs.counts().values()
    return sum(counts) >= LEAST and median(counts) >= LEAST_A_CLASS
