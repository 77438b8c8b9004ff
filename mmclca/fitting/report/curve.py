# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The learning curve, and what more photographs may bring."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FACTOR = 2  # how far beyond what was measured an estimate goes
LEAST_ERROR = 0.001  # the logarithm of none is none
STEEPEST = -1  # no more than half of the errors go with twice the photographs


@dataclass(frozen=True)
class Point:
    """An accuracy, 0 to 1, with its interval, by photographs of a class."""

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
    It is never below the last point, and None of fewer than two points.
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


LEFT, RIGHT, TOP, BOTTOM = 44, 424, 12, 204  # of the axes, in a 440 x 250 box
APART = 26  # between numbers below the axis, so that they can be read
STEP = 0.1  # of accuracy between two lines


def chart(points: Sequence[Point], estimate: Point | None) -> dict:
    """Place a learning curve, photographs on a logarithmic scale.

    ``lines``, height and label of each; ``numbers`` of photographs and
    their places; ``points``, what was measured; ``curve`` and ``band`` of
    its interval, in SVG; ``beyond`` and ``beyond_band`` to the ``estimate``.
    """
    ahead = [estimate] if estimate else []
    every = [*points, *ahead]
    lowest = STEP * math.floor(min(p.low for p in every) / STEP + 1e-9)
    spread = math.log(every[-1].photographs / every[0].photographs) or 1.0

    def x(point: Point) -> float:
        share = math.log(point.photographs / every[0].photographs) / spread
        return round(LEFT + 16 + share * (RIGHT - LEFT - 32), 1)

    def y(accuracy: float) -> float:
        share = (accuracy - lowest) / (1 - lowest)
        return round(BOTTOM - share * (BOTTOM - TOP), 1)

    def places(some: Sequence[Point]) -> list[tuple[float, float]]:
        return [(x(p), y(p.accuracy)) for p in some]

    def outline(some: Sequence[Point]) -> str:
        above = [(x(p), y(p.high)) for p in some]
        below = [(x(p), y(p.low)) for p in reversed(some)]
        return _text(above + below)

    tail = [points[-1], *ahead] if ahead else []
    steps = range(round(lowest / STEP), round(1 / STEP) + 1)
    return dict(
        lines=[(y(n * STEP), f'{100 * n * STEP:.0f} %') for n in steps],
        numbers=_apart([(x(p), p.photographs) for p in every]),
        points=places(points),
        band=outline(points),
        curve=_text(places(points)),
        beyond=_text(places(tail)),
        beyond_band=outline(tail),
        estimate=places(ahead)[0] if ahead else None,
    )


def _text(places: Sequence[tuple[float, float]]) -> str:
    return ' '.join(f'{x},{y}' for x, y in places)


def _apart(numbers: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Those that do not touch, the last one first."""
    kept = []
    for place, number in reversed(numbers):
        if not kept or kept[-1][0] - place >= APART:
            kept.append((place, number))
    return kept[::-1]
