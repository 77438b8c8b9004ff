# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Figures: pictures side by side, what explains them, where they go."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends import BackendFilter, backend_registry
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure, FigureBase
from PIL import Image
from torch import Tensor

from mmclca.datasets.decoding import read_bgr

from .painting import HEAT, paint_map

DPI = 100
LINE = 0.17  # inches of a line of text
# of images that are right, in no more than their coarse class, wrong or
# neither; Okabe and Ito's colours
FRAMES = {True: '#0072b2', 'coarse': '#009e73', False: '#e69f00', None: None}


@dataclass
class Panel:
    """Place a picture in a grid, with texts above and below it.

    ``image`` is RGB (H, W, 3) or grey (H, W), None for texts alone; ``frame``
    the colour of a frame around it.
    """

    image: np.ndarray | None
    title: str = ''
    note: str = ''
    frame: str | None = None


def photograph(path: str | Path, side: int = 320, **texts) -> Panel:
    """Read an image for a :class:`Panel`, as a thumbnail of some pixels."""
    image = Image.fromarray(np.ascontiguousarray(read_bgr(path)[..., ::-1]))
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return Panel(np.asarray(image), **texts)


def picture_grid(
    rows: Sequence[Sequence[Panel | None]],
    names: Sequence[str] = (),
    height: float = 2.1,
    margin: float = 0.0,
    heading: str = '',
) -> tuple[Figure, list[Axes]]:
    """Draw rows of pictures, without ticks.

    Args:
        rows (Sequence[Sequence[Panel | None]]): The rows; None is a gap.
        names (Sequence[str]): What to write beside each. Defaults to none.
        height (float): Height of a picture, in inches. Defaults to 2.1.
        margin (float): Height that is left for what comes below, in inches.
            Defaults to 0.
        heading (str): What to write above all of them. Defaults to ''.

    Returns:
        tuple[Figure, list[Axes]]: The figure, of constrained layout, and
        the axes of all cells.
    """
    images = (cell.image for row in rows for cell in row if cell)
    shapes = [image.shape for image in images if image is not None]
    width = max(height * max(w / h for h, w, *_ in shapes), 1.2)
    width *= max(map(len, rows))
    above = 0.5 * bool(heading)
    size = width, sum(height + _lines(row) for row in rows) + margin + above
    figure = Figure(size, dpi=DPI, layout='constrained')
    figure.suptitle(wrapped(heading, 10 * width), fontsize=12)
    return figure, draw_cells(figure, rows, width, names)


def _lines(row: Sequence[Panel | None]) -> float:
    """Compute the height of the texts of a row, in inches."""
    texts = [f'{cell.title}\n{cell.note}' for cell in row if cell]
    return LINE * (1 + max(text.count('\n') for text in texts))


def draw_cells(
    figure: FigureBase,
    rows: Sequence[Sequence[Panel | None]],
    width: float,
    names: Sequence[str] = (),
) -> list[Axes]:
    """Draw rows of pictures into a figure that is so many inches wide."""
    columns = max(map(len, rows))
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for line, row, name in zip_longest(axes, rows, names, fillvalue=''):
        line[0].set_ylabel(name, fontsize=9)
        for axis, cell in zip_longest(line, row):
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
            if cell:
                _draw_cell(axis, cell, 13 * width / columns)
    return list(axes.flat)


def _draw_cell(axis: Axes, cell: Panel, letters: float) -> None:
    if cell.image is not None:
        # a step of a pipeline may leave fractions
        image = cell.image.clip(0, 255).astype(np.uint8)
        axis.imshow(image, cmap='gray', vmin=0, vmax=255)
    axis.set_title(wrapped(cell.title, letters), fontsize=9)
    axis.set_xlabel(wrapped(cell.note, letters), fontsize=9)
    if cell.frame:
        axis.spines[:].set(visible=True, color=cell.frame, linewidth=4)


def wrapped(text: str, letters: float) -> str:
    """Break lines that are longer than a number of letters."""
    lines = [textwrap.fill(line, int(letters)) for line in text.splitlines()]
    return '\n'.join(lines)


def side_by_side(
    pictures: Sequence[tuple[str, np.ndarray]], heading: str, factor: float
) -> np.ndarray:
    """Draw named images at 320 px times a factor, five a row, as an image."""
    cells = [
        Panel(image, f'{name}\n{image.shape[1]} x {image.shape[0]} px')
        for name, image in pictures
    ]
    rows = [cells[n : n + 5] for n in range(0, len(cells), 5)]
    height = 320 * factor / DPI
    return to_array(picture_grid(rows, height=height, heading=heading)[0])


def contact_sheet(
    groups: Mapping[str, Sequence[Panel]], out: str | Path, columns: int = 8
) -> None:
    """Draw images of several classes, a column a class, its name on top.

    Args:
        groups (dict[str, list[Panel]]): Images by the name of the class.
        out (str | Path): Picture to write; its ending gives the format.
        columns (int): Classes beside each other, before a new band begins
            below. Defaults to 8.

    Raises:
        ValueError: If there is no class, or no image in any of them.
    """
    if not any(groups.values()):
        raise ValueError('groups contains no image to draw')
    rows, names = [], list(groups)
    for start in range(0, len(names), columns):
        band = names[start : start + columns]
        for cells, name in ((groups[name], name) for name in band):
            if cells:
                cells[0].title = name
        rows += zip_longest(*(groups[name] for name in band))
    save(picture_grid(rows, height=1.6)[0], out)


@dataclass
class HeatMapRow:
    """Hold an image, and some maps of how much its patches count.

    Args:
        title (str): What to write beside the image.
        image (np.ndarray): RGB image as the model saw it, (H, W, 3), uint8.
        maps (dict[str, Tensor]): Maps (h, w), 0 and more, by what to write
            above them.
    """

    title: str
    image: np.ndarray
    maps: dict[str, Tensor]


def draw_heat_maps(images: Sequence[HeatMapRow], out: str, label: str) -> str:
    """Draw maps over images, one row an image, with a colour bar.

    Args:
        images (Sequence[HeatMapRow]): The images.
        out (str): Picture to write; its ending gives the format.
        label (str): What the colours mean.

    Returns:
        str: ``out``.
    """
    rows, above = [], None
    for one in images:
        titles = dict.fromkeys(one.maps, '') if list(one.maps) == above else {}
        maps = [
            Panel(paint_map(one.image, values), titles.get(name, name))
            for name, values in one.maps.items()
        ]
        rows.append([Panel(one.image), *maps])
        above = list(one.maps)
    figure, axes = picture_grid(rows, [one.title for one in images], 2.0, 0.8)
    add_heat_bar(figure, axes, label, ('none', 'most'))
    return save(figure, out)


def add_heat_bar(figure: Figure, axes, label: str, ends) -> None:
    """Put a colour bar below axes of a figure, with words at its two ends."""
    place = dict(location='bottom', shrink=0.5, aspect=25, pad=0.02)
    bar = figure.colorbar(ScalarMappable(cmap=HEAT), ax=list(axes), **place)
    bar.set_ticks([0, 1], labels=ends, fontsize=8)
    bar.set_label(label, fontsize=9, labelpad=1)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)


def save(figure: Figure, out: str | Path) -> str | Path:
    """Write a figure, and give its path, whose ending gives the format."""
    figure.savefig(out, dpi=DPI, bbox_inches='tight', pad_inches=0.06)
    return out


def to_array(figure: Figure) -> np.ndarray:
    """Draw a figure as an RGB image (H, W, 3), uint8."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def check_picture(path: str | Path) -> None:
    """Refuse a picture that cannot be written, before it is drawn.

    Raises:
        FileNotFoundError: If its folder is not there.
        ValueError: If matplotlib cannot write such files.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f'folder {path.parent} not found: create it')
    known = Figure().canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        raise ValueError(
            f'{path}: expected one of the formats '
            f'{", ".join(f".{ending}" for ending in sorted(known))}'
        )


def can_show() -> bool:
    """Tell whether figures can be shown in windows."""
    windows = backend_registry.list_builtin(BackendFilter.INTERACTIVE)
    return plt.get_backend().lower() in map(str.lower, windows)
