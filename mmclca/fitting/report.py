# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The page that says what was found out about a model, with its pictures."""

import math
import os
import shlex
from collections.abc import Container
from functools import partial
from io import StringIO
from operator import itemgetter
from pathlib import Path

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MultipleLocator, PercentFormatter
from PIL import Image

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.probe import error_slopes
from mmclca.checkpoints.fitted import prepare_writing
from mmclca.datasets.batches import view_of_input
from mmclca.models import reduces
from mmclca.utils.files import replace_bytes
from mmclca.utils.messages import first_of
from mmclca.visualization import legend, survivors
from mmclca.visualization.confusions import Predictions, most_confused
from mmclca.visualization.survivors import Survivors

from .pictures import Pictures, embedded
from .record import FitRecord, ModelFolder

__all__ = ['write_report']

UNIT = '\N{NO-BREAK SPACE}%'
LEAVES = 3
LEAF_SIDE = 224
BAR, SOFT, LINE, PAGE = '#0072b2', '#59636d', '#d8dee4', '#ffffff'
# as the style sheet has them, where a dark screen has others
COLOURS = {BAR: 'bar', SOFT: 'soft', LINE: 'line', PAGE: 'page'}
MOST = 24  # photographs whose label is doubtful
PAIRS = 6
PICTURES = 3  # of a kind
FACTOR = 2  # how far beyond what was measured an estimate goes


def write_report(
    folder: str | os.PathLike, opened: Container[str] = ()
) -> Path:
    """Write what was found out about a model as a page to read.

    One file, ``report.html``, with its pictures in it, that loads nothing
    from elsewhere and runs no script. It is replaced in one step.

    Args:
        folder (str | Path): The folder that ``fit`` wrote.
        opened (Container[str]): Paths of photos that may be opened. Defaults
            to (): copies in the folder are shown, and photos without a copy
            are left blank.

    Returns:
        Path: The file.

    Raises:
        FileNotFoundError: If ``fit.json`` or ``photographs.csv`` is missing.
        ValueError: If ``fit.json`` is damaged.
    """
    files = ModelFolder(folder)
    prepare_writing(files.path)
    record, used = files.read(), files.used_rows()
    digests = {row['path']: row['digest'] for row in used}
    pictures = Pictures(files.pictures, digests, opened)
    with files.blamed():
        text = _page_of(files, record, used, pictures)
    if opened:
        pictures.save()
    # names of files need not be text
    replace_bytes(files.report, text.encode(errors='replace'))
    return files.report


def _page_of(
    files: ModelFolder, record: FitRecord, used: list[dict], pictures: Pictures
) -> str:
    tested = tested_rows(used)
    wrong = [row for row in tested if row['predicted'] != row['class']]
    wrong.sort(key=itemgetter('p_given'))  # the most doubtful label first
    points = record.learning_curve
    ahead = expected(points)
    drawn = ahead and chart(points, ahead)
    return render(
        record=record,
        name=Path(record.source or files.path.resolve()).name,
        counts=[*record.counts.values()],
        tested=len(tested),
        grouped=any(row['group'] for row in used),
        classes=class_rows(record.probe['per_class']),
        pairs=confused_pairs(tested, record.classes, pictures),
        wrong=len(wrong),
        doubtful=[
            (x, pictures.thumbnail(x['path'], x['name'])) for x in wrong[:MOST]
        ],
        curve=dict(points=points, estimate=ahead, chart=drawn),
        kept=what_is_kept(files.model, tested, pictures),
        folder=shlex.quote(str(files.path)),
    )


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
    environment.filters['listed'] = partial(first_of, most=12)
    return environment.get_template('report.html').render(parts, plural=plural)


def percent(share: float) -> str:
    """Write a share, 0 to 1, with one decimal: '93.4 %'."""
    return f'{100 * share:.1f}{UNIT}'


def about(share: float) -> str:
    """Write a share, 0 to 1, in whole per cent: '93 %', 'under 1 %'."""
    if 0 < share < 0.01:
        return f'under 1{UNIT}'
    return f'over 99{UNIT}' if 0.99 < share < 1 else f'{100 * share:.0f}{UNIT}'


def of_hundred(share: float) -> int:
    """Round a share to so many of 100; all or none only if it is so."""
    number = round(100 * share)
    return number if share in (0, 1) else min(max(number, 1), 99)


def digits(value: float, number: int = 3) -> str:
    """Write a positive number with some significant digits: '0.482'."""
    decimals = number - 1 - math.floor(math.log10(value))
    return f'{value:.{max(decimals, 0)}f}'


def duration(seconds: float) -> str:
    """Write a time: '11 s', '2 min 51 s'."""
    minutes, rest = divmod(round(seconds), 60)
    return f'{minutes} min {rest} s' if minutes else f'{rest} s'


def plural(number: int, word: str, many: str = '') -> str:
    """Write a number of things: '1 class', '2 classes'."""
    return f'{number} {word if number == 1 else many or f"{word}s"}'


def tested_rows(used: list[dict]) -> list[dict]:
    """Choose the photographs that models fitted without them have named.

    Rows of photographs.csv, with the ``name`` of the file and its folder.
    """
    return [
        dict(
            row,
            name=str(Path(*Path(row['path']).parts[-2:])),
            p_given=float(row['p_given']),
            p_predicted=float(row['p_predicted']),
        )
        for row in used
        if row['predicted']  # a class's only photograph is never tested
    ]


def class_rows(per_class: dict[str, dict]) -> dict:
    """List the classes in the order of their recall, the worst first.

    ``measured``, their rows, and ``unmeasured``, names of others.
    """
    rows = [dict(found, name=name) for name, found in per_class.items()]
    unmeasured = [row['name'] for row in rows if row['recall'] is None]
    rows = [row for row in rows if row['recall'] is not None]
    rows.sort(key=itemgetter('recall', 'high', 'name'))
    return dict(measured=rows, unmeasured=unmeasured)


def confused_pairs(
    tested: list[dict], classes: list[str], pictures: Pictures
) -> list[dict]:
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
    return [_pair(found, pictures, *pair) for pair in pairs]


def _pair(found: Predictions, pictures: Pictures, a: int, b: int) -> dict:
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
        (title, [pictures.thumbnail(path, title) for path in paths[:PICTURES]])
        for title, paths in kinds.items()
        if paths
    ]
    counts = [count for count in counts if count[2]]
    return dict(one=one, other=other, counts=counts, groups=groups)


def expected(points: list[dict]) -> dict | None:
    """Estimate the accuracy with twice the photographs of a learning curve.

    By :func:`error_slopes`, for the accuracy and for either end of its
    interval. It is never below the last point, and None of fewer than two.
    """
    if len(points) < 2:
        return None
    last, names = points[-1], ('accuracy', 'low', 'high')
    wanted = FACTOR * last['photographs']
    x, y, slopes = error_slopes(points, names)
    found = 1 - np.exp(y + slopes * (np.log(wanted) - x))
    accuracy = max(found[0], last['accuracy'])
    low = max(min(found[1], accuracy), last['low'])
    shares = map(float, (accuracy, low, max(found[2], accuracy)))
    return dict(zip(names, shares, strict=True), photographs=wanted)


def what_is_kept(
    model: Path, tested: list[dict], pictures: Pictures
) -> dict | None:
    """Draw what a model keeps of some photographs that it names right.

    ``rows``, for each photograph what to write below its pictures, and
    these; ``legend``, the swatches that occur. None where there is no
    checkpoint, the model keeps all of an image, or no photograph is there.
    """
    if not model.is_file():
        return None
    inferencer = TokenReductionInferencer(model, device='cpu')
    if not reduces(inferencer.model.backbone):
        return None
    views = [
        view_of_input(inferencer.model, row['class'], inputs)
        for row in _chosen(tested)
        if (inputs := pictures.view(inferencer, row['path'])) is not None
    ]
    found = survivors(inferencer.model, views)
    if not found:
        return None
    return dict(rows=[_row(one) for one in found], legend=legend(found))


def _chosen(tested: list[dict]) -> list[dict]:
    """Choose the first photograph named right of each of some classes."""
    right = [row for row in tested if row['predicted'] == row['class']]
    first = {row['class']: row for row in reversed(right)}
    return [first[name] for name in sorted(first)[:LEAVES]]


def _row(one: Survivors) -> list[tuple[str, dict]]:
    """Write below each stage what squares have a token of their own."""
    pictures = {one.title: one.image}
    for stage in one.stages:
        kept = '' if stage.mixed else f': {about(stage.kept)} kept'
        pictures[f'{stage.title}{kept}'] = stage.picture
    return [
        (text, embedded(Image.fromarray(array), text, LEAF_SIDE))
        for text, array in pictures.items()
    ]


def chart(points: list[dict], estimate: dict) -> str:
    """Draw a learning curve as SVG, photographs on a logarithmic scale.

    Its colours are those of the style sheet.
    """
    with rc_context({'svg.fonttype': 'none', 'svg.hashsalt': 'chart'}):
        figure = Figure((6.1, 3.5), layout='constrained')
        axes = figure.subplots()
        lowest = min(point['low'] for point in points)
        axes.set(xscale='log', xlabel='photographs a class')
        axes.set_ylim(math.floor(10 * lowest) / 10, 1)
        _plot(axes, [points[-1], estimate], '--', PAGE)
        _plot(axes, points, '-', BAR)
        _tidy(axes)
        file = StringIO()
        nothing = dict.fromkeys(('Creator', 'Date', 'Format', 'Type'))
        figure.savefig(file, format='svg', transparent=True, metadata=nothing)
    svg = file.getvalue()
    for colour, name in COLOURS.items():
        svg = svg.replace(colour, f'var(--{name})')
    return svg[svg.index('<svg') :]


def _plot(axes: Axes, points: list[dict], style: str, inside: str) -> None:
    names = ('photographs', 'accuracy', 'low', 'high')
    x, y, low, high = ([point[name] for point in points] for name in names)
    axes.fill_between(x, low, high, color=BAR, alpha=0.2, linewidth=0)
    axes.plot(x, y, style, marker='o', color=BAR, markerfacecolor=inside)


def _tidy(axes: Axes) -> None:
    """Leave lines, numbers and what they are of."""
    numbers, shares = LogLocator(subs=(1, 2, 5)), MultipleLocator(0.1)
    axes.xaxis.set(major_locator=numbers, major_formatter='{x:g}')
    percents = PercentFormatter(1, 0, UNIT)
    axes.yaxis.set(major_locator=shares, major_formatter=percents)
    axes.minorticks_off()
    axes.grid(axis='y', color=LINE)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelcolor=SOFT, labelsize=12)
    axes.xaxis.label.set(color=SOFT, size=12)
    axes.spines[:].set_visible(False)
