# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from pathlib import Path

import mmcv

from mmclca.datasets.synthetic_leaves import drawn_leaves

CULTIVARS = tuple(f'cultivar_{number:02d}' for number in range(1, 9))


def examples_for(classes: Sequence[str], folder: str | Path) -> list[str]:
    """Drawn leaves for a model that knows them, and none for any other.

    Args:
        classes (Sequence[str]): Names of the classes of the model.
        folder (str | Path): Where to write them.

    Returns:
        list[str]: Their paths.
    """
    return draw_examples(folder) if tuple(classes) == CULTIVARS else []


def draw_examples(folder: str | Path, num_leaves: int = 8) -> list[str]:
    """Draw leaves to try a model with, each of another cultivar.

    With eight of them the cultivars are those of ``make demo``, in their
    order; the leaves are others.

    Args:
        folder (str | Path): Where to write them.
        num_leaves (int): How many. Defaults to 8.

    Returns:
        list[str]: Their paths.
    """
    paths = []
    for name, image in drawn_leaves(num_leaves):
        path = Path(folder, f'{name.replace(" ", "_")}.png')
        mmcv.imwrite(image, str(path))
        paths.append(str(path))
    return paths
