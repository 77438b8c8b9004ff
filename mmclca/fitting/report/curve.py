# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The learning curve, and what more photographs may bring."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FACTOR = 2  # how far beyond what was measured an estimate goes
LEAST_ERROR = 0.001  # the logarithm of none is none
STEEPEST = -1  # no more than half of the errors go with twice the photographs


@dataclass(frozen=True)
class Point:
    """A point of the curve.

    Args:
        photographs (int): Photographs of a class.
        accuracy (float): 0 to 1.
        low (float): Lower end of the interval.
        high (float): Upper end of the interval.
    """

    photographs: int
    accuracy: float
    low: float
    high: float


def expected(points: Sequence[Point]) -> Point | None:
    """An estimate for twice the photographs that the curve ends with.

    The error falls as a power of the number of photographs: a line through
    the logarithms of both, for the accuracy and for either end of its
    interval. `Deep Learning Scaling is Predictable, Empirically` finds this
    law in many tasks. Of few points the line can be too steep: twice the
    photographs take away half of the errors at most.

    Args:
        points (Sequence[Point]): What was measured.

    Returns:
        Point: None where fewer than two points were measured. Never below
        the last point.
    """
    if len(points) < 2:
        return None
    last, wanted = points[-1], FACTOR * points[-1].photographs
    numbers = [point.photographs for point in points]
    names = ('accuracy', 'low', 'high')
    columns = ([vars(point)[name] for point in points] for name in names)
    found = [_extended(numbers, column, wanted) for column in columns]
    accuracy = max(found[0], last.accuracy)
    low, high = min(found[1], accuracy), max(found[2], accuracy)
    return Point(wanted, accuracy, max(low, last.low), high)


def _extended(
    numbers: Sequence[int], accuracies: Sequence[float], wanted: int
) -> float:
    errors = np.maximum(1 - np.array(accuracies), LEAST_ERROR)
    x, y = np.log(numbers), np.log(errors)
    slope = np.clip(np.polyfit(x, y, deg=1)[0], STEEPEST, 0)
    return float(1 - np.exp(y.mean() + slope * (np.log(wanted) - x.mean())))
