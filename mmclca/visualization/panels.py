# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import textwrap

import numpy as np
from matplotlib.figure import Figure

from .picture_grid import to_array

_DPI = 100
_ROW = 5  # panels beside each other


def draw_panels(panels, heading, height=320):
    """Draw images side by side, with a line of text above all of them.

    Args:
        panels (list[tuple[str, np.ndarray]]): Names and RGB images, (H, W, 3)
            or (H, W).
        heading (str): What is said of all of them.
        height (int): Height that images are brought to, in pixels.
            Defaults to 320.

    Returns:
        np.ndarray: The picture, uint8 RGB of shape (H, W, 3).
    """
    columns = min(len(panels), _ROW)
    rows = -(-len(panels) // _ROW)
    side = height / _DPI
    shapes = [np.shape(image)[:2] for _, image in panels]
    widest = max(width / height for height, width in shapes)
    wide, high = max(side * widest, 2.4), side + 0.5
    size = columns * wide, rows * high + 0.5
    figure = Figure(size, dpi=_DPI, layout='constrained')
    figure.suptitle(_wrap(heading, columns * wide * 10), fontsize=12)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[len(panels) :]:
        axes.axis('off')
    for axes, (name, image) in zip(grid, panels, strict=False):
        _draw(axes, _wrap(name, wide * 13), image)
    return to_array(figure)


def _wrap(text, width):
    lines = [textwrap.fill(line, int(width)) for line in text.splitlines()]
    return '\n'.join(lines)


def _draw(axes, name, image):
    image = np.asarray(image)
    if image.dtype != np.uint8:  # a step may have left fractions
        image = image.clip(0, 255).astype(np.uint8)
    height, width = image.shape[:2]
    axes.imshow(image, cmap='gray', vmin=0, vmax=255, interpolation='nearest')
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color('0.7')  # the edge of a white image
    axes.set_title(f'{name}\n{width} x {height} px', fontsize=9)
