# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from .legend import add_heat_bar
from .painting import HEAT
from .survivors import enlarge


@dataclass
class Heated:
    """An image, and some maps of how much its patches count.

    Args:
        title (str): What to write beside the image.
        image (np.ndarray): RGB image as the model saw it, (H, W, 3), uint8.
        maps (dict[str, Tensor]): Maps (h, w), 0 and more, by what to write
            above them.
    """

    title: str
    image: np.ndarray
    maps: dict[str, Tensor]


def paint_map(image: np.ndarray, one: Tensor) -> np.ndarray:
    """Colour the patches of an image: dark for 0, bright for the largest.

    Args:
        image (np.ndarray): RGB image (H, W, 3), uint8.
        one (Tensor): Map (h, w), 0 and more.

    Returns:
        np.ndarray: Image of the same size, uint8.
    """
    share = (one / one.max().clamp(min=1e-12)).cpu().numpy()
    colours = torch.from_numpy(255 * matplotlib.colormaps[HEAT](share))
    heat = enlarge(colours[..., :3], image.shape)
    grey = image.mean(axis=2, keepdims=True)
    return (0.25 * grey + 0.75 * heat).round().astype(np.uint8)


def draw_heat_maps(images: Sequence[Heated], out: str, label: str) -> None:
    """Draw maps over images, one row an image, with a colour bar.

    Args:
        images (Sequence[Heated]): The images.
        out (str): Picture to write; its ending gives the format.
        label (str): What the colours mean.
    """
    columns = 1 + len(images[0].maps)
    lines = 1 + max(name.count('\n') for one in images for name in one.maps)
    height = 2.2 + 0.18 * max(lines - 2, 0)
    figure = Figure(
        figsize=(2.1 * columns, height * len(images) + 0.8),
        layout='constrained',
    )
    axes = figure.subplots(len(images), columns, squeeze=False)
    above = []
    for row, one in zip(axes, images, strict=True):
        row[0].imshow(one.image)
        row[0].set_ylabel(one.title, fontsize=9)
        repeated = list(one.maps) == above
        pairs = zip(row[1:], one.maps.items(), strict=True)
        for axis, (name, values) in pairs:
            axis.imshow(paint_map(one.image, values))
            axis.set_title('' if repeated else name, fontsize=9)
        above = list(one.maps)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    add_heat_bar(figure, axes.flat, label, ('none', 'most'))
    figure.savefig(out, dpi=100, bbox_inches='tight', pad_inches=0.06)
