# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The pictures of the report, which are inside the page."""

import base64
import math
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MultipleLocator, PercentFormatter
from PIL import Image, ImageOps

from mmclca.apis import TokenReductionInferencer
from mmclca.datasets.batches import view_of_input
from mmclca.datasets.decoding import UndecodedError, decode, open_image
from mmclca.models import reduces
from mmclca.utils.files import read_bytes
from mmclca.visualization import legend, survivors
from mmclca.visualization.survivors import Survivors

UNIT = '\N{NO-BREAK SPACE}%'
SIDE = 160  # pixels of the longer side: twice what the page shows
QUALITY = 72
JPEG = b'\xff\xd8'
LEAVES = 3
LEAF_SIDE = 224
BAR, SOFT, LINE, PAGE = '#0072b2', '#59636d', '#d8dee4', '#ffffff'
# as the style sheet has them, where a dark screen has others
COLOURS = {BAR: 'bar', SOFT: 'soft', LINE: 'line', PAGE: 'page'}


@dataclass(frozen=True)
class Picture:
    """Hold a picture of the page.

    Args:
        src (str): Address that holds it; empty where there is none to show.
        width (int): In pixels.
        height (int): In pixels.
        alt (str): What it shows, for those who do not see it.
    """

    src: str
    width: int
    height: int
    alt: str


def percent(share: float) -> str:
    """Write a share, 0 to 1, with one decimal: '93.4 %'."""
    return f'{100 * share:.1f}{UNIT}'


def about(share: float) -> str:
    """Write a share, 0 to 1, in whole per cent: '93 %', 'under 1 %'."""
    if 0 < share < 0.01:
        return f'under 1{UNIT}'
    return f'over 99{UNIT}' if 0.99 < share < 1 else f'{100 * share:.0f}{UNIT}'


def thumbnail(path: str, alt: str) -> Picture:
    """Make a photograph small, upright.

    Empty where the file is gone or no longer an image.
    """
    try:
        return embedded(_upright(path), alt, SIDE)
    except (OSError, UndecodedError):
        return Picture('', SIDE, SIDE, alt)


def _upright(path: str) -> Image.Image:
    """Read an image as it is seen.

    A JPEG is read at a fraction of its size, in a tenth of the time.
    """
    content = read_bytes(path)
    if not content.startswith(JPEG):
        return Image.fromarray(decode(content)[..., ::-1])
    image = open_image(BytesIO(content))
    image.draft('RGB', (2 * SIDE, 2 * SIDE))
    return ImageOps.exif_transpose(image)


def embedded(image: Image.Image, alt: str, side: int) -> Picture:
    """Put an image into the page, as JPEG of at most some pixels a side."""
    image.thumbnail((side, side))
    file = BytesIO()
    image.convert('RGB').save(file, 'JPEG', quality=QUALITY, optimize=True)
    content = base64.b64encode(file.getvalue()).decode()
    return Picture(f'data:image/jpeg;base64,{content}', *image.size, alt)


def what_is_kept(model: Path, tested: list[dict]) -> dict | None:
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
        view_of_input(inferencer.model, row['class'], packed['inputs'])
        for row in _chosen(tested)
        # else why it cannot be read
        if not isinstance(packed := inferencer.prepare(row['path']), str)
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


def _row(one: Survivors) -> list[tuple[str, Picture]]:
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
