# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Photos on the page: uploads, and synthetic leaves to try."""

from collections.abc import Sequence
from pathlib import Path

import mmcv
import numpy as np
from PIL import Image

from mmclca.datasets.batches import read_image
from mmclca.datasets.decoding import FORMATS, MAX_PIXELS
from mmclca.datasets.synthetic_leaves import generate_leaves
from mmclca.errors import Error
from mmclca.languages import text

PREVIEW = 1024  # longer side of shown photos, in pixels
MIN_SIDE = 16  # pixels
# some models enlarge the shorter side, and the longer one with it
MAX_ASPECT = 30
CULTIVARS = tuple(f'cultivar_{number:02d}' for number in range(1, 9))


def read_photo(path: str | Path) -> np.ndarray:
    """Read an uploaded photo as in training.

    Args:
        path (str | Path): The file.

    Returns:
        np.ndarray: BGR image (H, W, 3), uint8.

    Raises:
        Error: If the file is not an image, damaged, too large, too small
            or too elongated. The message is shown on the page.
    """
    try:
        image = read_image(str(path))
    except ValueError as error:
        raise Error(
            text(
                'page.photo.unreadable',
                problem=error,
                formats=', '.join(FORMATS),
                pixels=f'{MAX_PIXELS / 1e6:.0f}',
            )
        ) from error
    height, width = image.shape[:2]
    short, long = sorted((height, width))
    if short < MIN_SIDE or long > MAX_ASPECT * short:
        raise Error(
            text(
                'page.photo.shape',
                width=width,
                height=height,
                side=MIN_SIDE,
                ratio=MAX_ASPECT,
            )
        )
    return image


def make_preview(image: Image.Image) -> Image.Image:
    """Return an RGB copy, at most ``PREVIEW`` pixels wide or high."""
    small = image.convert('RGB')
    small.thumbnail((PREVIEW, PREVIEW))
    return small


def list_examples(classes: Sequence[str], folder: str | Path) -> list[str]:
    """Draw examples if the classes are the synthetic cultivars."""
    return draw_examples(folder) if tuple(classes) == CULTIVARS else []


def draw_examples(folder: str | Path, num_leaves: int = 8) -> list[str]:
    """Draw one new leaf per cultivar of ``make demo``; return the paths."""
    paths = []
    for name, image in generate_leaves(num_leaves):
        path = Path(folder, f'{name.replace(" ", "_")}.png')
        mmcv.imwrite(image, str(path))
        paths.append(str(path))
    return paths
