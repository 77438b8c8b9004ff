# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Classes that are taken for each other, and labels to look at again."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from mmclca.visualization.confusions import Predictions, most_confused

from .folder import FitFolder, Named
from .thumbnails import Picture, thumbnail

PAIRS = 6
PICTURES = 3  # of a kind
DOUBTFUL = 24


@dataclass(frozen=True)
class Pair:
    """Two classes that are taken for each other.

    Args:
        one (str): The class that is taken for the other one more often.
        other (str): The other one.
        counts (list[tuple]): For each direction ``(class, taken for, how
            many, of how many)``.
        groups (list[tuple[str, list[Picture]]]): Titles and photographs:
            those of each class that are right, and those that are taken for
            the other one.
    """

    one: str
    other: str
    counts: list[tuple[str, str, int, int]]
    groups: list[tuple[str, list[Picture]]]


def confused_pairs(fit: FitFolder) -> list[Pair]:
    """The pairs that are most often taken for each other, worst first.

    Args:
        fit (FitFolder): The folder; its tested photographs are read.
    """
    place = {name: label for label, name in enumerate(fit.classes)}
    labels = [place[one.label] for one in fit.tested]
    taken = [place[one.predicted] for one in fit.tested]
    paths = [one.path for one in fit.tested]
    found = np.array(labels, int), np.array(taken, int)
    predictions = Predictions(paths, *found, fit.classes)
    matrix = predictions.matrix()
    pairs = most_confused(matrix, PAIRS)
    return [_pair(predictions, matrix, *pair) for pair in pairs]


def _pair(
    predictions: Predictions, matrix: np.ndarray, one: int, other: int
) -> Pair:
    first, second = (predictions.classes[n] for n in (one, other))
    counts = [
        (first, second, matrix[one, other], matrix[one].sum()),
        (second, first, matrix[other, one], matrix[other].sum()),
    ]
    groups = {
        f'{first}, recognized': (one, one),
        f'{first}, taken for {second}': (one, other),
        f'{second}, taken for {first}': (other, one),
        f'{second}, recognized': (other, other),
    }
    shown = [
        (title, [thumbnail(path, title) for path in paths[:PICTURES]])
        for title, places in groups.items()
        if (paths := predictions.taken_for(*places))
    ]
    return Pair(first, second, [c for c in counts if c[2]], shown)


def doubtful(tested: Sequence[Named]) -> list[Named]:
    """Photographs that are taken for another class than theirs.

    Args:
        tested (Sequence[Named]): Photographs.

    Returns:
        list[Named]: The one whose class is least likely first.
    """
    wrong = [one for one in tested if not one.right]
    return sorted(wrong, key=attrgetter('p_given'))


def with_pictures(photographs: Sequence[Named]) -> list[tuple[Named, Picture]]:
    """The first photographs of a list, to be shown.

    Args:
        photographs (Sequence[Named]): Of :func:`doubtful`.
    """
    return [
        (one, thumbnail(one.path, f'{one.name}, given as {one.label}'))
        for one in photographs[:DOUBTFUL]
    ]
