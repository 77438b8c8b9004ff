# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Figures with a row for each image and pictures of it side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

WIDTH = 2.1  # inches of a picture


@dataclass
class Row:
    """Pictures of one image.

    Args:
        name (str): What to write beside them.
        pictures (list[np.ndarray]): RGB images (H, W, 3), uint8.
        titles (list[str]): What to write above each of them.
    """

    name: str
    pictures: list[np.ndarray]
    titles: list[str]


def picture_grid(
    rows: Sequence[Row], row_height: float, margin: float
) -> tuple[Figure, list[Axes]]:
    """Draw rows of as many pictures each, without ticks and frames.

    Args:
        rows (Sequence[Row]): The rows.
        row_height (float): Height of one, in inches.
        margin (float): Height that is left for what comes below, in inches.

    Returns:
        tuple[Figure, list[Axes]]: The figure, of constrained layout, and
        the axes of all pictures.
    """
    columns = len(rows[0].pictures)
    size = (WIDTH * columns, row_height * len(rows) + margin)
    figure = Figure(figsize=size, layout='constrained')
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for line, row in zip(axes, rows, strict=True):
        line[0].set_ylabel(row.name, fontsize=9)
        pairs = zip(line, row.pictures, row.titles, strict=True)
        for axis, picture, title in pairs:
            axis.imshow(picture)
            axis.set_title(title, fontsize=9)
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
    return figure, list(axes.flat)


def to_array(figure: Figure) -> np.ndarray:
    """A figure as an RGB image (H, W, 3), uint8."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
