# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Figures: image grids, color bars, and output to files or arrays."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

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
from mmclca.errors import Error
from mmclca.utils.files import replace_file

from .painting import HEAT, paint_map

Out = TypeVar('Out', bound=str | Path)
DPI = 100
LINE = 0.17  # height of a text line in inches
# by correctness: same class, same coarse class, other class, or unlabeled;
# colors of Okabe and Ito
FRAMES = {True: '#0072b2', 'coarse': '#009e73', False: '#e69f00', None: None}


@dataclass
class Panel:
    """Image in a grid, with texts above and below.

    ``image`` is RGB (H, W, 3) or gray (H, W), None for texts only; ``frame``
    is the color of its frame.
    """

    image: np.ndarray | None
    title: str = ''
    note: str = ''
    frame: str | None = None


def draw_photo(path: str | Path, side: int = 320, **texts) -> Panel:
    """Read an image as a :class:`Panel`, downscaled to ``side`` pixels."""
    image = Image.fromarray(
        np.ascontiguousarray(read_bgr(str(path))[..., ::-1])
    )
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return Panel(np.asarray(image), **texts)


def picture_grid(
    rows: Sequence[Sequence[Panel | None]],
    names: Sequence[str] = (),
    height: float = 2.1,
    margin: float = 0.0,
    heading: str = '',
) -> tuple[Figure, list[Axes]]:
    """Draw panels in rows, without ticks; None is an empty cell.

    ``names`` are written next to the rows, ``heading`` above all. ``height``
    of a panel and ``margin`` below all rows are in inches. Returns the figure,
    with constrained layout, and all axes.
    """
    images = (cell.image for row in rows for cell in row if cell)
    shapes = [image.shape for image in images if image is not None]
    width = max(height * max(w / h for h, w, *_ in shapes), 1.2)
    width *= max(map(len, rows))
    above = 0.5 * bool(heading)
    # lines of text around the panels of a row
    lines = [
        1 + max(f'{x.title}\n{x.note}'.count('\n') for x in row if x)
        for row in rows
    ]
    total = sum(height + LINE * number for number in lines)
    size = width, total + margin + above
    figure = Figure(size, dpi=DPI, layout='constrained')
    figure.suptitle(wrapped(heading, 10 * width), fontsize=12)
    return figure, draw_cells(figure, rows, width, names)


def draw_cells(
    figure: FigureBase,
    rows: Sequence[Sequence[Panel | None]],
    width: float,
    names: Sequence[str] = (),
) -> list[Axes]:
    """Draw panels in rows into a figure ``width`` inches wide."""
    columns = max(map(len, rows))
    axes = figure.subplots(len(rows), columns, squeeze=False)
    names = names or [''] * len(rows)
    for line, row, name in zip(axes, rows, names, strict=True):
        line[0].set_ylabel(name, fontsize=9)
        for axis, cell in zip_longest(line, row):
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
            if cell:
                _draw_cell(axis, cell, 13 * width / columns)
    return list(axes.flat)


def _draw_cell(axis: Axes, cell: Panel, letters: float) -> None:
    if cell.image is not None:
        # pipeline steps can return fractions
        image = cell.image.clip(0, 255).astype(np.uint8)
        axis.imshow(image, cmap='gray', vmin=0, vmax=255)
    axis.set_title(wrapped(cell.title, letters), fontsize=9)
    axis.set_xlabel(wrapped(cell.note, letters), fontsize=9)
    if cell.frame:
        axis.spines[:].set(visible=True, color=cell.frame, linewidth=4)


def wrapped(title: str, letters: float) -> str:
    """Wrap lines longer than ``letters``."""
    lines = [textwrap.fill(line, int(letters)) for line in title.splitlines()]
    return '\n'.join(lines)


def side_by_side(
    pictures: Sequence[tuple[str, np.ndarray]], heading: str, factor: float
) -> np.ndarray:
    """Draw named images 320 px * factor high, five per row, as an array."""
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
    """Draw images in one column per class, with the class name on top.

    Args:
        groups (dict[str, list[Panel]]): Images by class name.
        out (str | Path): The picture; its suffix selects the format.
        columns (int): Classes per band of rows. Defaults to 8.

    Raises:
        Error: If there is no image.
    """
    if not any(groups.values()):
        raise Error('groups contains no image to draw')
    rows, names = [], list(groups)
    for start in range(0, len(names), columns):
        band = names[start : start + columns]
        for cells, name in ((groups[name], name) for name in band):
            if cells:
                cells[0].title = name
        rows += zip_longest(*(groups[name] for name in band))
    save_figure(picture_grid(rows, height=1.6)[0], out)


@dataclass
class HeatMapRow:
    """Image with heat maps over its patches.

    Args:
        title (str): Text next to the image.
        image (np.ndarray): RGB image as the model input, (H, W, 3), uint8.
        maps (dict[str, Tensor]): Non-negative maps (h, w) by title.
    """

    title: str
    image: np.ndarray
    maps: dict[str, Tensor]


def draw_heat_maps(images: Sequence[HeatMapRow], out: str, label: str) -> str:
    """Draw heat maps over images, one row per image, with a color bar.

    Args:
        images (Sequence[HeatMapRow]): The images.
        out (str): The picture; its suffix selects the format.
        label (str): Meaning of the colors.

    Returns:
        str: ``out``.
    """
    rows, above = [], None
    for row in images:
        titles = dict.fromkeys(row.maps, '') if list(row.maps) == above else {}
        maps = [
            Panel(paint_map(row.image, values), titles.get(name, name))
            for name, values in row.maps.items()
        ]
        rows.append([Panel(row.image), *maps])
        above = list(row.maps)
    figure, axes = picture_grid(rows, [x.title for x in images], 2.0, 0.8)
    add_heat_bar(figure, axes, label, ('none', 'most'))
    return save_figure(figure, out)


def add_heat_bar(figure: Figure, axes, label: str, ends) -> None:
    """Add a color bar below axes, with texts at both ends."""
    bar = figure.colorbar(
        ScalarMappable(cmap=HEAT),
        ax=list(axes),
        location='bottom',
        shrink=0.5,
        aspect=25,
        pad=0.02,
    )
    bar.set_ticks([0, 1], labels=ends, fontsize=8)
    bar.set_label(label, fontsize=9, labelpad=1)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)


def save_figure(figure: Figure, out: Out) -> Out:
    """Write a figure and return its path; the suffix selects the format."""
    write = partial(
        figure.savefig, dpi=DPI, bbox_inches='tight', pad_inches=0.06
    )
    replace_file(Path(out), write)
    return out


def to_array(figure: Figure) -> np.ndarray:
    """Draw a figure as an RGB image (H, W, 3), uint8."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def check_picture(path: str | Path) -> None:
    """Check picture folder and format before drawing.

    Raises a FileNotFoundError without the folder, and an Error for a
    format that matplotlib cannot write.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f'folder {path.parent} not found: create it')
    suffixes = Figure().canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in suffixes:
        raise Error(
            f'{path}: expected one of the formats '
            f'{", ".join(f".{ending}" for ending in sorted(suffixes))}'
        )


def can_show() -> bool:
    """Return whether matplotlib can open windows."""
    windows = backend_registry.list_builtin(BackendFilter.INTERACTIVE)
    return plt.get_backend().lower() in map(str.lower, windows)
