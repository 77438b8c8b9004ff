# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images to predict: finding, reading and preparing them."""

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from mmengine.dataset import default_collate
from mmpretrain.utils import track

from mmclca.datasets.image_files import decode_whole, files_below
from mmclca.utils.image_suffixes import PHOTOGRAPH_SUFFIXES
from mmclca.utils.reading import read_bytes


def find_images(places: Iterable) -> list:
    """Images at files, folders and patterns, each file once.

    Args:
        places (Iterable[str | Path | np.ndarray]): Files and addresses;
            folders, for the images in them and in all folders below that are
            not hidden; patterns such as ``'scans/*.tif'``; arrays.

    Returns:
        list[str | np.ndarray]: Paths and arrays. A path that leads nowhere is
        kept, to be reported with what cannot be read.
    """
    found, seen = [], set()
    for place in places:
        for image in _images_at(place):
            if isinstance(image, np.ndarray):
                found.append(image)
            elif os.path.realpath(image) not in seen:
                seen.add(os.path.realpath(image))
                found.append(image)
    return found


def _images_at(place) -> Iterator:
    if isinstance(place, np.ndarray):
        yield place
        return
    place = os.fspath(place)
    found = [place]
    if not os.path.exists(place):
        found = sorted(glob.glob(place, recursive=True)) or found
    for path in found:
        yield from _images_below(path) if os.path.isdir(path) else (path,)


def _images_below(folder: str) -> list[str]:
    below = files_below(folder)
    return [x for x in below if x.lower().endswith(PHOTOGRAPH_SUFFIXES)]


def prepared_batches(
    prepare: Callable, sources: Sequence, batch_size: int
) -> Iterator[tuple[range, dict | None, dict[int, str]]]:
    """Prepare images batch by batch, with a progress bar.

    Args:
        prepare (Callable): ``TokenReductionInferencer.prepare``.
        sources (Sequence[str | np.ndarray]): The images.
        batch_size (int): Images at a time.

    Yields:
        tuple[range, dict | None, dict[int, str]]: Positions of the images;
        those that can be read, collated, None without any; by position why
        others cannot.

    Raises:
        ValueError: If ``batch_size`` is below 1.
    """
    if batch_size < 1:
        raise ValueError(f'batch_size={batch_size} must be 1 or more')
    starts = range(0, len(sources), batch_size)
    for start in track(starts, 'Inference', total=len(starts)):
        positions = range(start, min(start + batch_size, len(sources)))
        prepared = {n: prepare(sources[n]) for n in positions}
        unread = {n: x for n, x in prepared.items() if isinstance(x, str)}
        read = [x for n, x in prepared.items() if n not in unread]
        yield positions, default_collate(read) if read else None, unread


def read_image(
    source: str | np.ndarray, over_white: bool = True
) -> np.ndarray:
    """Read an image as training does.

    Args:
        source (str | np.ndarray): A file or an address, or a BGR image
            (H, W, 3), uint8, as ``mmcv.imread`` gives it.
        over_white (bool): Whether transparent pixels are laid over white, as
            by ``LoadPhotograph``; else their colours are seen, as by
            ``LoadImageFromFile``. Defaults to True.

    Returns:
        np.ndarray: BGR image (H, W, 3), uint8.

    Raises:
        ValueError: If it is no image, or only a part of one; says why.
    """
    if isinstance(source, np.ndarray):
        return _checked(source)
    try:
        content = read_bytes(source)
    except FileNotFoundError:
        raise ValueError('no such file or folder') from None
    except OSError as error:
        raise ValueError(f'{type(error).__name__}: {error}') from error
    return decode_whole(content, over_white)


def _checked(image: np.ndarray) -> np.ndarray:
    """An array if it is an image; ValueError where it is none."""
    is_image = image.ndim == 3 and image.shape[2] == 3 and image.size
    if not is_image or image.dtype != np.uint8:
        raise ValueError(
            f'an array {image.shape} of {image.dtype} is no BGR image: give '
            '(H, W, 3) of uint8'
        )
    return image
