# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Classes by their recall, those taken for each other, and odd labels."""

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from mmclca.visualization.confusions import Predictions, most_confused

from .folder import FitFolder, Named
from .thumbnails import Picture, thumbnail

MOST = 50  # classes of a table
PAIRS = 6
PICTURES = 3  # of a kind


def class_tables(per_class: dict[str, dict]) -> dict:
    """Classes in the order of their recall.

    ``tables``, titles and rows from the worst class to the best: all, or the
    ends of a long list; ``unlisted``, how many classes are between these;
    ``unmeasured``, names of others.
    """
    rows = [
        dict(found, name=name)
        for name, found in per_class.items()
        if found['recall'] is not None
    ]
    rows.sort(key=lambda row: (row['recall'], row['high'], row['name']))
    tables, unlisted = [('All classes', rows)], max(len(rows) - 2 * MOST, 0)
    if unlisted:
        tables = [
            (f'The {MOST} worst classes', rows[:MOST]),
            (f'The {MOST} best classes', rows[-MOST:]),
        ]
    unmeasured = [x for x in per_class if per_class[x]['recall'] is None]
    return dict(tables=tables, unlisted=unlisted, unmeasured=unmeasured)


def confused_pairs(fit: FitFolder) -> list[dict]:
    """The pairs that are most often taken for each other, worst first.

    Each with ``one``, the class that is taken for the ``other`` one more
    often; ``counts``, for each direction ``(class, taken for, how many, of
    how many)``; and ``groups``, titles and photographs.
    """
    classes = fit.record.classes
    place = {name: label for label, name in enumerate(classes)}
    predictions = Predictions(
        [one.path for one in fit.tested],
        np.array([place[one.label] for one in fit.tested], int),
        np.array([place[one.predicted] for one in fit.tested], int),
        classes,
    )
    matrix = predictions.matrix()
    pairs = most_confused(matrix, PAIRS)
    return [_pair(predictions, matrix, *pair) for pair in pairs]


def _pair(
    predictions: Predictions, matrix: np.ndarray, one: int, other: int
) -> dict:
    first, second = (predictions.classes[n] for n in (one, other))
    counts = [
        (first, second, matrix[one, other], matrix[one].sum()),
        (second, first, matrix[other, one], matrix[other].sum()),
    ]
    kinds = {
        f'{first}, recognized': (one, one),
        f'{first}, taken for {second}': (one, other),
        f'{second}, taken for {first}': (other, one),
        f'{second}, recognized': (other, other),
    }
    groups = [
        (title, [thumbnail(path, title) for path in paths[:PICTURES]])
        for title, places in kinds.items()
        if (paths := predictions.taken_for(*places))
    ]
    counts = [count for count in counts if count[2]]
    return dict(one=first, other=second, counts=counts, groups=groups)


def doubtful(tested: Sequence[Named]) -> list[Named]:
    """Photographs that are taken for another class than theirs.

    The one whose class is least likely comes first.
    """
    wrong = [one for one in tested if not one.right]
    return sorted(wrong, key=attrgetter('p_given'))


def with_picture(one: Named) -> tuple[Named, Picture]:
    """A photograph whose label is doubtful, to be shown."""
    return one, thumbnail(one.path, f'{one.name}, given as {one.label}')
