# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write the HTML report of a fitted model."""

import math
import os
import shlex
from collections.abc import Container
from functools import cache, partial
from io import StringIO
from operator import itemgetter
from pathlib import Path

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MultipleLocator, PercentFormatter
from PIL import Image

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.probe import forecast
from mmclca.checkpoints.model_folder import (
    PhotoRow,
    damaged_file_errors,
    prepare_writing,
)
from mmclca.datasets.batches import make_view
from mmclca.datasets.photos.cells import TABLES
from mmclca.datasets.pipelines import CROP
from mmclca.models import reduces
from mmclca.utils.files import replace_bytes
from mmclca.utils.messages import join_first
from mmclca.visualization import find_kept_patches, legend
from mmclca.visualization.confusions import Predictions, most_confused
from mmclca.visualization.kept_patches import MIXED, SWATCHES, KeptPatches
from mmclca.visualization.painting import DROPPED, MERGED

from .pictures import Pictures, embedded
from .record import FitFolder, FitRecord
from .screen import why_unmeasured

__all__ = ['write_report']

PATCH_PHOTOS = 3
PATCH_SIDE = 224
BAR, SOFT, LINE, PAGE = '#0072b2', '#59636d', '#d8dee4', '#ffffff'
# colors of the style sheet, which a dark screen replaces
COLORS = {BAR: 'bar', SOFT: 'soft', LINE: 'line', PAGE: 'page'}
MAX_WRONG = 24
SURE = 0.9  # probability of a prediction that questions the label
MAX_PAIRS = 6
PER_GROUP = 3
FACTOR = 2  # extrapolate the learning curve to twice the photos


def write_report(
    folder: str | os.PathLike, opened: Container[str] = ()
) -> Path:
    """Write the report of a fitted model, ``report.html``.

    The file contains its pictures, loads nothing and runs no script. It is
    replaced in one step.

    Args:
        folder (str | Path): Folder of the model.
        opened (Container[str]): Paths of photos that may be opened. Defaults
            to (): copies in the folder are shown, and photos without a copy
            are left blank.

    Returns:
        Path: The file.

    Raises:
        FileNotFoundError: If ``fit.json`` or ``photographs.csv`` is missing.
        Error: If ``fit.json`` is damaged.
    """
    files = FitFolder(folder)
    prepare_writing(files.path)
    record, used = files.read(), files.read_used_photos()
    digests = {photo.path: photo.sha256 for photo in used}
    pictures = Pictures(files.pictures, digests, opened)
    with damaged_file_errors(files.table, ValueError):
        tested = tested_rows(used, record.classes)
    kept = draw_kept_patches(files.model, tested, pictures)
    with files.blame_facts():
        text = _page_of(files, record, used, tested, kept, pictures)
    if opened:
        pictures.save()
    # file names need not be UTF-8
    replace_bytes(files.report, text.encode(errors='replace'))
    return files.report


def _page_of(
    files: FitFolder,
    record: FitRecord,
    used: list[PhotoRow],
    tested: list[dict],
    kept: dict | None,
    pictures: Pictures,
) -> str:
    wrong = [row for row in tested if row['predicted'] != row['class']]
    wrong.sort(key=itemgetter('p_given'))  # least probable label first
    doubtful = [row for row in wrong if row['p_predicted'] >= SURE]
    errors = [row for row in wrong if row['p_predicted'] < SURE]
    counts = [*record.counts.values()]
    grouped = any(photo.group for photo in used)
    unit = curve_unit(counts, grouped)
    place = (record.call or {}).get('photos')
    return render(
        record=record,
        name=files.name_model(record),
        why_unmeasured=why_unmeasured(record),
        counts=counts,
        added=added_classes(used, record.source, place),
        tested=len(tested),
        grouped=grouped,
        crop=CROP,
        classes=class_rows(record.probe['per_class']),
        pairs=confused_pairs(tested, record.classes, pictures),
        sure=SURE,
        num_doubtful=len(doubtful),
        doubtful=_with_thumbnails(doubtful, pictures),
        num_errors=len(errors),
        errors=_with_thumbnails(errors, pictures),
        curve=describe_curve(record.learning_curve, unit, record.probe),
        kept=kept,
        folder=shlex.quote(files.path.resolve().name),
    )


def _with_thumbnails(rows: list[dict], pictures: Pictures) -> list[tuple]:
    """Pair the first rows with small copies of their photos."""
    return [
        (row, pictures.thumbnail(row['path'], row['name']))
        for row in rows[:MAX_WRONG]
    ]


def added_classes(used: list[PhotoRow], *sources: str | None) -> list[str]:
    """List the classes with photos from outside the sources of a fit.

    Sources are folders and tables; the latter stand for their folder. If they
    contain no photo at all, as a table lists photos elsewhere, none is known
    to be added.
    """
    folders = (os.path.dirname(x) if is_table(x) else x for x in sources if x)
    inside = tuple(os.path.join(folder, '') for folder in folders)
    outside = [x for x in used if not x.path.startswith(inside)]
    if len(outside) == len(used):
        return []
    return sorted({photo.label for photo in outside})


def is_table(source: str) -> bool:
    """Return whether photos are listed in a table."""
    return Path(source).suffix.lower() in TABLES


def render(**parts) -> str:
    """Fill the template; names of classes and files are escaped."""
    return _template().render(parts, plural=plural)


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader('mmclca.fitting', 'templates'),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = percent, about, out_of_hundred, digits, duration
    filters += is_table, file_name
    environment.filters |= {write.__name__: write for write in filters}
    environment.filters['listed'] = partial(join_first, limit=12)
    return environment.get_template('report.html')


def file_name(source: str) -> str:
    """Return the name of a file or folder without its path; keep addresses.

    A report may be sent to others: paths name folders and users.
    """
    return source if '://' in source else Path(source).name


def percent(share: float) -> str:
    """Write a share, 0 to 1, with one decimal: '93.4%'."""
    return f'{share:.1%}'


def about(share: float) -> str:
    """Write a share, 0 to 1, in whole percent: '93%', 'under 1%'."""
    if 0 < share < 0.01:
        return 'under 1%'
    return 'over 99%' if 0.99 < share < 1 else f'{share:.0%}'


def out_of_hundred(share: float) -> int:
    """Round a share to a number out of 100; 0 and 100 only if exact."""
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
    """Write a number and a noun: '1 class', '2 classes'."""
    return f'{number} {word if number == 1 else many or f"{word}s"}'


def tested_rows(used: list[PhotoRow], classes: list[str]) -> list[dict]:
    """Describe the tested photos.

    ``name`` is 'folder/file', ``labels`` are those of class and prediction.

    Raises:
        ValueError: If a class is not in ``classes``.
    """
    return [
        {
            'path': photo.path,
            'class': photo.label,
            'predicted': photo.prediction,
            'p_given': photo.label_probability,
            'p_predicted': photo.prediction_probability,
            'name': str(Path(*Path(photo.path).parts[-2:])),
            'labels': [
                classes.index(photo.label),
                classes.index(photo.prediction),
            ],
        }
        for photo in used
        if photo.prediction  # a class with one photo is not tested
    ]


def class_rows(per_class: dict[str, dict]) -> dict:
    """List the classes by recall, lowest first.

    ``per_class`` maps names to ``recall``, None if not tested, and its bounds.
    ``measured`` holds their rows, ``unmeasured`` the names of other classes.
    """
    rows = [dict(found, name=name) for name, found in per_class.items()]
    unmeasured = [row['name'] for row in rows if row['recall'] is None]
    rows = [row for row in rows if row['recall'] is not None]
    rows.sort(key=itemgetter('recall', 'high', 'name'))
    return dict(measured=rows, unmeasured=unmeasured)


def confused_pairs(
    tested: list[dict], classes: list[str], pictures: Pictures
) -> list[dict]:
    """Find the most confused pairs of classes.

    ``one`` is misclassified as ``other`` more often than vice versa.
    ``counts`` has ``(class, prediction, errors, photos)`` per direction, and
    ``groups`` has titles and photos.
    """
    found = [row['labels'] for row in tested]
    labels, predicted = np.array(found, int).reshape(-1, 2).T
    paths = [row['path'] for row in tested]
    found = Predictions(paths, labels, predicted, classes)
    pairs = most_confused(found.matrix(), MAX_PAIRS)
    return [_pair(found, pictures, *pair) for pair in pairs]


def _pair(found: Predictions, pictures: Pictures, a: int, b: int) -> dict:
    """Describe the confusions between the classes ``a`` and ``b``."""
    one, other, matrix = found.classes[a], found.classes[b], found.matrix()
    counts = [
        (one, other, matrix[a, b], matrix[a].sum()),
        (other, one, matrix[b, a], matrix[b].sum()),
    ]
    kinds = {
        f'{one}, correct': found.classified_as(a, a),
        f'{one}, misclassified as {other}': found.classified_as(a, b),
        f'{other}, misclassified as {one}': found.classified_as(b, a),
        f'{other}, correct': found.classified_as(b, b),
    }
    groups = [
        (title, [pictures.thumbnail(x, title) for x in paths[:PER_GROUP]])
        for title, paths in kinds.items()
        if paths
    ]
    counts = [count for count in counts if count[2]]
    return dict(one=one, other=other, counts=counts, groups=groups)


def curve_unit(counts: list[int], grouped: bool) -> str:
    """Return the x label of a learning curve, such as 'photos per class'."""
    unit = 'groups per class' if grouped else 'photos per class'
    is_even = not grouped and len({*counts}) == 1
    return unit if is_even else f'{unit} (median)'


def describe_curve(points: list[dict], unit: str, probe: dict) -> dict:
    """Extrapolate and draw a learning curve.

    The last point is the accuracy of the probe and has its interval. Return
    ``points``, ``unit`` as given, ``estimate``, the extrapolated point, and
    ``chart``, SVG. Fewer than two points give None for the last two.
    """
    ahead = forecast(points, FACTOR)
    if points and points[-1]['accuracy'] == probe['accuracy']:
        bounds = {name: probe[name] for name in ('low', 'high')}
        points = [*points[:-1], points[-1] | bounds]
    drawn = ahead and chart(points, ahead, unit)
    return dict(points=points, estimate=ahead, chart=drawn, unit=unit)


def draw_kept_patches(
    model: Path, tested: list[dict], pictures: Pictures
) -> dict | None:
    """Draw the remaining patches of correctly classified photos.

    Return ``rows``, captions and pictures per photo after each stage,
    ``legend``, the swatches in use, and whether patches are merged
    (``merges``) or dropped (``drops``). Return None without a checkpoint,
    token reduction or photo.
    """
    if not model.is_file():
        return None
    inferencer = TokenReductionInferencer(model, device='cpu')
    if not reduces(inferencer.model.backbone):
        return None
    views = [
        make_view(inferencer.model, row['class'], inputs)
        for row in _chosen(tested)
        if (inputs := pictures.view(inferencer, row['path'])) is not None
    ]
    found = find_kept_patches(inferencer.model, views)
    if not found:
        return None
    swatches = legend(found)
    return dict(
        rows=[_row(one) for one in found],
        legend=swatches,
        merges=SWATCHES[MERGED] in swatches or MIXED in swatches,
        drops=SWATCHES[DROPPED] in swatches,
    )


def _chosen(tested: list[dict]) -> list[dict]:
    """Select one correct photo per class, from ``PATCH_PHOTOS`` classes."""
    right = [row for row in tested if row['predicted'] == row['class']]
    first = {row['class']: row for row in reversed(right)}
    return [first[name] for name in sorted(first)[:PATCH_PHOTOS]]


def _row(one: KeptPatches) -> list[tuple[str, dict]]:
    """Return captions and pictures: the photo, then each stage."""
    pictures = {one.title: one.image}
    for stage in one.stages:
        text = stage.title
        if not stage.mixed:
            text += f': {about(stage.kept)} of patches {stage.kept_as}'
        pictures[text] = stage.picture
    return [
        (text, embedded(Image.fromarray(array), text, PATCH_SIDE))
        for text, array in pictures.items()
    ]


def chart(points: list[dict], estimate: dict, unit: str) -> str:
    """Draw a learning curve as SVG, with a logarithmic x axis.

    Colors refer to the style sheet.
    """
    with rc_context({'svg.fonttype': 'none', 'svg.hashsalt': 'chart'}):
        figure = Figure((6.1, 3.5), layout='constrained')
        axes = figure.subplots()
        lowest = min(point['low'] for point in points)
        axes.set(xscale='log', xlabel=unit, ylabel='accuracy')
        axes.set_ylim(math.floor(10 * lowest) / 10, 1)
        ahead = dict(ls='--', mfc=PAGE, label='estimate')
        _plot(axes, [points[-1], estimate], **ahead)
        _plot(axes, points, label='measured')
        _tidy(axes)
        file = StringIO()
        nothing = dict.fromkeys(('Creator', 'Date', 'Format', 'Type'))
        figure.savefig(file, format='svg', transparent=True, metadata=nothing)
    svg = file.getvalue()
    for color, name in COLORS.items():
        svg = svg.replace(color, f'var(--{name})')
    return svg[svg.index('<svg') :]


def _plot(axes: Axes, points: list[dict], **look) -> None:
    names = ('photos', 'accuracy', 'low', 'high')
    x, y, low, high = ([point[name] for point in points] for name in names)
    axes.fill_between(x, low, high, color=BAR, alpha=0.2, linewidth=0)
    axes.plot(x, y, marker='o', color=BAR, **look)


def _tidy(axes: Axes) -> None:
    """Remove chart clutter; keep grid, ticks, labels and legend."""
    numbers, shares = LogLocator(subs=(1, 2, 5)), MultipleLocator(0.1)
    axes.xaxis.set(major_locator=numbers, major_formatter='{x:g}')
    percents = PercentFormatter(1, 0)
    axes.yaxis.set(major_locator=shares, major_formatter=percents)
    axes.minorticks_off()
    axes.grid(axis='y', color=LINE)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelcolor=SOFT, labelsize=12)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(color=SOFT, size=12)
    axes.legend(frameon=False, labelcolor=SOFT, loc='lower right')
    axes.spines[:].set_visible(False)
