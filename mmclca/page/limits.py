# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which uploaded pictures are read, said in words for whoever sent one."""

from pathlib import Path

import numpy as np

from mmclca.datasets.batches import read_image
from mmclca.datasets.decoding import FORMATS, MAX_PIXELS

MEGABYTES = 50  # of a file; Gradio refuses more
LEAST_SIDE = 16  # pixels
# Times as long as wide: some models enlarge the shorter side, and the longer
# one with it.
LONGEST_SHAPE = 30


def read_leaf(path: str | Path) -> np.ndarray:
    """Read an uploaded picture as training does, if it is one.

    Args:
        path (str | Path): The file.

    Returns:
        np.ndarray: BGR image (H, W, 3), uint8.

    Raises:
        ValueError: If it is no picture, damaged, too large or too small; in
            words that need no knowledge of programming.
    """
    try:
        image = read_image(str(path))
    except ValueError as error:
        raise ValueError(
            f'This picture cannot be read ({error}). Please choose a '
            f'photograph or a scan of a leaf ({", ".join(FORMATS)}, at most '
            f'{MAX_PIXELS / 1e6:.0f} million pixels); if it is one, copy it '
            'again from the camera or scanner, or save it as a JPEG.'
        ) from error
    _check_shape(*image.shape[1::-1])
    return image


def _check_shape(width: int, height: int) -> None:
    short, long = sorted((width, height))
    if short < LEAST_SIDE:
        raise ValueError(
            f'This picture has {width} x {height} pixels, too few to see '
            f'anything: each side needs at least {LEAST_SIDE}.'
        )
    if long > LONGEST_SHAPE * short:
        raise ValueError(
            f'This picture has {width} x {height} pixels, too long a strip: '
            f'at most {LONGEST_SHAPE} times as long as wide is read. '
            'Please cut out the leaf.'
        )
