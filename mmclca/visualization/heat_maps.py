# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from .figures import Panel, add_heat_bar, picture_grid, save
from .painting import paint_map


@dataclass
class Heated:
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


def draw_heat_maps(images: Sequence[Heated], out: str, label: str) -> str:
    """Draw maps over images, one row an image, with a colour bar.

    Args:
        images (Sequence[Heated]): The images.
        out (str): Picture to write; its ending gives the format.
        label (str): What the colours mean.

    Returns:
        str: ``out``.
    """
    rows, above = [], []
    for one in images:
        titles = list(one.maps)
        maps = [
            Panel(
                paint_map(one.image, values), '' if titles == above else name
            )
            for name, values in one.maps.items()
        ]
        rows.append([Panel(one.image), *maps])
        above = titles
    figure, axes = picture_grid(rows, [one.title for one in images], 2.0, 0.8)
    add_heat_bar(figure, axes, label, ('none', 'most'))
    return save(figure, out)
