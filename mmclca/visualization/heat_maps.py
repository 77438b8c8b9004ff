# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from .legend import add_heat_bar
from .painting import paint_heat
from .picture_grid import Row, picture_grid


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
    share = one / one.max().clamp(min=1e-12)
    return paint_heat(image, share.cpu()).round().astype(np.uint8)


def draw_heat_maps(images: Sequence[Heated], out: str, label: str) -> None:
    """Draw maps over images, one row an image, with a colour bar.

    Args:
        images (Sequence[Heated]): The images.
        out (str): Picture to write; its ending gives the format.
        label (str): What the colours mean.
    """
    lines = 1 + max(name.count('\n') for one in images for name in one.maps)
    height = 2.2 + 0.18 * max(lines - 2, 0)
    rows, above = [], []
    for one in images:
        names = list(one.maps)
        titles = [''] * len(names) if names == above else names
        maps = [paint_map(one.image, values) for values in one.maps.values()]
        rows.append(Row(one.title, [one.image, *maps], ['', *titles]))
        above = names
    figure, axes = picture_grid(rows, height, margin=0.8)
    add_heat_bar(figure, axes, label, ('none', 'most'))
    figure.savefig(out, dpi=100, bbox_inches='tight', pad_inches=0.06)
