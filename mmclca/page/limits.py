# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which uploaded files are read, said in words for whoever sent one."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from mmclca.apis.sources import read_image

# read both by Pillow and by OpenCV; Pillow runs other programs for some more
FORMATS = ('JPEG', 'PNG', 'TIFF', 'WEBP', 'BMP', 'PPM')
ALLOWED = 'JPEG, PNG, TIFF, WebP, BMP, PGM and PPM are'
HEIC = (b'ftyphei', b'ftyphev', b'ftypmif1', b'ftypmsf1')


@dataclass(frozen=True)
class Limits:
    """How large a picture may be.

    Args:
        megabytes (int): Size of the file. Defaults to 50.
        megapixels (int): Pixels. Defaults to 50.
        least_side (int): Pixels of the shorter side. Defaults to 16.
        longest_shape (int): How many times as long as wide it may be: the
            shorter side is enlarged for some models, and the longer one with
            it. Defaults to 30.
    """

    megabytes: int = 50
    megapixels: int = 50
    least_side: int = 16
    longest_shape: int = 30


LIMITS = Limits()


def read_leaf(path: str | Path, limits: Limits = LIMITS) -> np.ndarray:
    """Read an uploaded picture as training does, if it is one.

    Its size is taken from its first bytes, so that one that is too large is
    never decoded. Pictures that a camera has turned (EXIF) are turned back,
    greyscale, 16-bit, CMYK and palette ones become BGR, transparent pixels
    are laid over white, and of several frames the first one is taken.

    Args:
        path (str | Path): The file.
        limits (Limits): What is allowed. Defaults to those of
            :class:`Limits`.

    Returns:
        np.ndarray: BGR image (H, W, 3), uint8.

    Raises:
        ValueError: If it is no picture, damaged, too large or too small; in
            words that need no knowledge of programming.
    """
    _check_bytes(os.path.getsize(path), limits)
    _check_shape(*_size_of(path, limits), limits)
    try:
        return read_image(str(path))
    except ValueError as error:
        raise ValueError(
            f'This picture is damaged, or only a part of it arrived ({error})'
            '. Please copy it again from the camera or scanner, or open it in '
            'a picture viewer and save it anew.'
        ) from error


def _check_bytes(size: int, limits: Limits) -> None:
    if not size:
        raise ValueError('This file is empty. Please choose another one.')
    if size > limits.megabytes * 2**20:
        raise ValueError(
            f'This file has {size / 2**20:.0f} MB, and at most '
            f'{limits.megabytes} MB are read. Please save the picture as a '
            'JPEG, or smaller.'
        )


def _size_of(path, limits: Limits) -> tuple[int, int]:
    """Width and height as the first bytes of a picture say."""
    try:
        with Image.open(path, formats=FORMATS) as image:
            return image.size
    except Image.DecompressionBombError:
        many = 'hundreds of millions of'
        raise ValueError(_too_many(many, limits)) from None
    except Exception:  # a decoder may raise anything
        raise ValueError(_no_picture(path)) from None


def _no_picture(path) -> str:
    with open(path, 'rb') as file:
        start = file.read(16)
    if any(mark in start for mark in HEIC):
        return (
            'This is a HEIC picture, the format of iPhones, which is not '
            'read. Please save or send it as a JPEG.'
        )
    return (
        'This file is no picture that can be read, whatever its name says: '
        f'{ALLOWED}. Please choose a photograph or a scan of a leaf.'
    )


def _too_many(pixels: str, limits: Limits) -> str:
    return (
        f'This picture has {pixels} pixels, and at most {limits.megapixels} '
        'million are read. Please save it smaller.'
    )


def _check_shape(width: int, height: int, limits: Limits) -> None:
    if width * height > limits.megapixels * 1e6:
        raise ValueError(_too_many(f'{width} x {height}', limits))
    short, long = sorted((width, height))
    if short < limits.least_side:
        raise ValueError(
            f'This picture has {width} x {height} pixels, too few to see '
            f'anything: each side needs at least {limits.least_side}.'
        )
    if long > limits.longest_shape * short:
        raise ValueError(
            f'This picture has {width} x {height} pixels, too long a strip: '
            f'at most {limits.longest_shape} times as long as wide is read. '
            'Please cut out the leaf.'
        )
