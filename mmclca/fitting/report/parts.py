# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parts of the report: classes, confusions, odd labels, more photographs."""

from operator import itemgetter
from pathlib import Path

import numpy as np

from mmclca.utils.files import read_rows
from mmclca.visualization.confusions import Predictions, most_confused

from .pictures import thumbnail

MOST = 50  # classes of a table
PAIRS = 6
PICTURES = 3  # of a kind
FACTOR = 2  # how far beyond what was measured an estimate goes
LEAST_ERROR = 0.001  # the logarithm of none is none
STEEPEST = -1  # no more than half of the errors go with twice the photographs


def read_tested(table: Path, source: str | None) -> list[dict]:
    """Read the photographs that models fitted without them have named.

    Rows of photographs.csv, with the ``name`` of the file below ``source``
    and ``right``, whether it is taken for what it is given as.
    """
    return [
        row
        | dict(
            name=_name(Path(row['path']), source),
            right=row['predicted'] == row['class'],
            p_given=float(row['p_given']),
            p_predicted=float(row['p_predicted']),
        )
        for row in used_rows(table)
        if row['predicted']  # a class's only photograph is never tested
    ]


def used_rows(table: Path) -> list[dict]:
    """Read the rows of photographs.csv of those that were used."""
    return [row for row in read_rows(table) if row['used'] == 'True']


def _name(path: Path, source: str | None) -> str:
    if source and path.is_relative_to(source):
        return str(path.relative_to(source))
    return str(Path(*path.parts[-2:]))


def class_tables(per_class: dict[str, dict]) -> dict:
    """List the classes in the order of their recall.

    ``tables``, titles and rows from the worst class to the best: all, or the
    ends of a long list; ``unlisted``, how many classes are between these;
    ``unmeasured``, names of others.
    """
    unmeasured = [x for x in per_class if per_class[x]['recall'] is None]
    rows = [
        dict(found, name=name)
        for name, found in per_class.items()
        if name not in unmeasured
    ]
    rows.sort(key=lambda row: (row['recall'], row['high'], row['name']))
    tables, unlisted = [('All classes', rows)], max(len(rows) - 2 * MOST, 0)
    if unlisted:
        tables = [
            (f'The {MOST} worst classes', rows[:MOST]),
            (f'The {MOST} best classes', rows[-MOST:]),
        ]
    return dict(tables=tables, unlisted=unlisted, unmeasured=unmeasured)


def confused_pairs(tested: list[dict], classes: list[str]) -> list[dict]:
    """Find the pairs that are most often taken for each other, worst first.

    Each with ``one``, the class that is taken for the ``other`` one more
    often; ``counts``, for each direction ``(class, taken for, how many, of
    how many)``; and ``groups``, titles and photographs.
    """
    labels, predicted = (
        np.array([classes.index(row[name]) for row in tested], int)
        for name in ('class', 'predicted')
    )
    paths = [row['path'] for row in tested]
    predictions = Predictions(paths, labels, predicted, classes)
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


def doubtful(tested: list[dict]) -> list[dict]:
    """List photographs that are taken for another class than theirs.

    The one whose class is least likely comes first.
    """
    wrong = [row for row in tested if not row['right']]
    return sorted(wrong, key=itemgetter('p_given'))


def expected(points: list[dict]) -> dict | None:
    """Estimate the accuracy with twice the photographs of a learning curve.

    The error falls as a power of the number of photographs: a line through
    the logarithms of both, for the accuracy and for either end of its
    interval. `Deep Learning Scaling is Predictable, Empirically` finds this
    law in many tasks. Of few points the line can be too steep: twice the
    photographs take away half of the errors at most.
    It is never below the last point, and None of fewer than two points.
    """
    if len(points) < 2:
        return None
    last, names = points[-1], ('accuracy', 'low', 'high')
    wanted = FACTOR * last['photographs']
    x = np.log([point['photographs'] for point in points])
    shares = np.array([[point[name] for name in names] for point in points])
    y = np.log(np.maximum(1 - shares, LEAST_ERROR))
    slope = np.clip(np.polyfit(x, y, deg=1)[0], STEEPEST, 0)
    found = 1 - np.exp(y.mean(0) + slope * (np.log(wanted) - x.mean()))
    accuracy = max(found[0], last['accuracy'])
    low = max(min(found[1], accuracy), last['low'])
    shares = map(float, (accuracy, low, max(found[2], accuracy)))
    return dict(zip(names, shares, strict=True), photographs=wanted)
