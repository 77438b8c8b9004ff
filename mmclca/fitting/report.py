# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The page that says what was found out about a model."""

import math
import os
import shlex
from functools import partial
from operator import itemgetter
from pathlib import Path

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from mmclca.checkpoints.releases import first
from mmclca.utils.files import replace_bytes
from mmclca.visualization.confusions import Predictions, most_confused

from .pictures import about, chart, percent, thumbnail, what_is_kept
from .record import ModelFolder

__all__ = ['write_report']

DOUBTFUL = 24  # photographs to show
MOST = 50  # classes of a table
PAIRS = 6
PICTURES = 3  # of a kind
FACTOR = 2  # how far beyond what was measured an estimate goes
LEAST_ERROR = 0.001  # the logarithm of none is none
STEEPEST = -1  # no more than half of the errors go with twice the photographs


def write_report(folder: str | os.PathLike) -> Path:
    """Write what was found out about a model as a page to read.

    One file, ``report.html``, with its pictures in it, that loads nothing
    from elsewhere and runs no script. It is replaced in one step.

    Args:
        folder (str | Path): The folder that ``fit`` wrote. Photographs
            that are no longer where they were are left blank.

    Returns:
        Path: The file.

    Raises:
        FileNotFoundError: If ``fit.json`` or ``photographs.csv`` is missing.
        ValueError: If ``fit.json`` is damaged.
    """
    files = ModelFolder(folder)
    record, used = files.read(), files.used_rows()
    tested = tested_rows(used, record.source)
    wrong = [row for row in tested if row['predicted'] != row['class']]
    wrong.sort(key=itemgetter('p_given'))  # the most doubtful label first
    text = render(
        record=record,
        name=Path(record.source or files.path.resolve()).name,
        counts=[*record.counts.values()],
        tested=len(tested),
        grouped=any(row['group'] for row in used),
        classes=class_tables(record.probe['per_class']),
        pairs=confused_pairs(tested, record.classes),
        wrong=len(wrong),
        doubtful=[(row, _doubted(row)) for row in wrong[:DOUBTFUL]],
        curve=_curve(record.learning_curve),
        kept=what_is_kept(files.model, tested),
        folder=shlex.quote(str(files.path)),
    )
    # names of files need not be text
    replace_bytes(files.report, text.encode(errors='replace'))
    return files.report


def render(**parts) -> str:
    """Fill the template; names of classes and files are text, no markup."""
    environment = Environment(
        loader=PackageLoader('mmclca.fitting', 'templates'),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (percent, about, of_hundred, digits, duration)
    environment.filters |= {write.__name__: write for write in filters}
    environment.filters['listed'] = partial(first, count=12)
    return environment.get_template('report.html').render(parts, plural=plural)


def of_hundred(share: float) -> int:
    """Round a share to so many of 100; all or none only if it is so."""
    number = round(100 * share)
    return number if share in (0, 1) else min(max(number, 1), 99)


def digits(value: float, number: int = 3) -> str:
    """Write a positive number with some significant digits: '0.482'."""
    decimals = number - 1 - math.floor(math.log10(value))
    return f'{value:.{max(decimals, 0)}f}'


def duration(seconds: float) -> str:
    """Write a time: '11 s', '2 min 51 s', '1 h 5 min'."""
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f'{rest} s'
    hours, left = divmod(minutes, 60)
    return f'{hours} h {left} min' if hours else f'{minutes} min {rest} s'


def plural(number: int, word: str, many: str = '') -> str:
    """Write a number of things: '1 class', '2 classes'."""
    return f'{number} {word if number == 1 else many or f"{word}s"}'


def tested_rows(used: list[dict], source: str | None) -> list[dict]:
    """Choose the photographs that models fitted without them have named.

    Rows of photographs.csv, with the ``name`` of the file below ``source``.
    """
    return [
        row
        | dict(name=_name(Path(row['path']), source))
        | {name: float(row[name]) for name in ('p_given', 'p_predicted')}
        for row in used
        if row['predicted']  # a class's only photograph is never tested
    ]


def _name(path: Path, source: str | None) -> str:
    if source and path.is_relative_to(source):
        return str(path.relative_to(source))
    return str(Path(*path.parts[-2:]))


def _doubted(row: dict):
    return thumbnail(row['path'], f'{row["name"]}, given as {row["class"]}')


def class_tables(per_class: dict[str, dict]) -> dict:
    """List the classes in the order of their recall.

    ``tables``, titles and rows from the worst class to the best: all, or the
    ends of a long list; ``unlisted``, how many classes are between these;
    ``unmeasured``, names of others.
    """
    rows = [dict(found, name=name) for name, found in per_class.items()]
    unmeasured = [row['name'] for row in rows if row['recall'] is None]
    rows = [row for row in rows if row['recall'] is not None]
    rows.sort(key=itemgetter('recall', 'high', 'name'))
    tables, unlisted = [('All classes', rows)], max(len(rows) - 2 * MOST, 0)
    if unlisted:
        ends = dict(worst=rows[:MOST], best=rows[-MOST:])
        tables = [(f'The {MOST} {end} classes', ends[end]) for end in ends]
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
    found = Predictions(paths, labels, predicted, classes)
    pairs = most_confused(found.matrix(), PAIRS)
    return [_pair(found, *pair) for pair in pairs]


def _pair(found: Predictions, a: int, b: int) -> dict:
    one, other, matrix = found.classes[a], found.classes[b], found.matrix()
    counts = [
        (one, other, matrix[a, b], matrix[a].sum()),
        (other, one, matrix[b, a], matrix[b].sum()),
    ]
    kinds = {
        f'{one}, recognized': found.taken_for(a, a),
        f'{one}, taken for {other}': found.taken_for(a, b),
        f'{other}, taken for {one}': found.taken_for(b, a),
        f'{other}, recognized': found.taken_for(b, b),
    }
    groups = [
        (title, [thumbnail(path, title) for path in paths[:PICTURES]])
        for title, paths in kinds.items()
        if paths
    ]
    counts = [count for count in counts if count[2]]
    return dict(one=one, other=other, counts=counts, groups=groups)


def _curve(points: list[dict]) -> dict | None:
    """Draw the learning curve with its estimate, of two points or more."""
    if not points:
        return None
    ahead = expected(points)
    drawn = ahead and chart(points, ahead)
    return dict(points=points, estimate=ahead, chart=drawn)


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
