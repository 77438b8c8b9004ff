# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which files can be read, and which show the same picture."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO

import numpy as np
from mmpretrain.utils import track
from PIL import Image, ImageOps

from mmclca.utils.files import read_bytes

from ..decoding import by_pillow, decode, open_image
from ..image_files import check_header

_THREADS = 8  # decoders leave the interpreter to the others
_SIDE = 16  # of the small pictures that are compared
# A picture that was saved in another format stays within this when it is made
# small. Others seldom do, and then it costs decoding both.
_TOLERANCE = 4
# what Pillow makes small though it is cut short, or no picture to OpenCV
_LENIENT = 'JPEG', 'MPO'
_NO_COLOURS = 'F', 'I'


@dataclass
class Look:
    """The size and hashes of an image file."""

    problem: str
    digest: str = ''
    size: tuple[int, int] = (0, 0)
    small: np.ndarray | None = None


def look_at(
    paths: Sequence[str], progress: Callable = track
) -> dict[str, Look]:
    """Look at files, in several threads.

    JPEG files, which have a quick way to it, are decoded to an eighth of
    their size.

    Args:
        paths (Sequence[str]): The files.
        progress (Callable): Draws a bar, as ``mmpretrain.utils.track``.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        looks = pool.map(_look, paths)
        looks = progress(looks, 'Photographs', total=len(paths))
        return dict(zip(paths, looks, strict=True))


def same_pictures(looks: dict[str, Look]) -> list[list[str]]:
    """Find files with the same bytes, or the same pixels once decoded.

    Returns:
        list[list[str]]: Two or more paths each, in the order of ``looks``.
    """
    copies = keys_by({path: look.digest for path, look in looks.items()})
    first = {paths[0]: looks[paths[0]].size for paths in copies.values()}
    close = [
        path
        for paths in keys_by(first).values()
        for path in _close(paths, looks)
    ]
    with ThreadPoolExecutor(_THREADS) as pool:
        pixels = dict(zip(close, pool.map(_digest_pixels, close), strict=True))
    pictures = {
        path: pixels.get(copies[look.digest][0], look.digest)
        for path, look in looks.items()
    }
    return [paths for paths in keys_by(pictures).values() if len(paths) > 1]


def _look(path: str) -> Look:
    problem = _problem_of_name(path)
    if problem:
        return Look(problem)
    try:
        content = read_bytes(path)
    except OSError as error:
        return Look(f'{type(error).__name__}: {error}')
    try:
        size, small = _small(content)
    except Exception as error:  # a decoder may raise anything
        problem = check_header(BytesIO(content))
        return Look(problem or f'{type(error).__name__}: {error}')
    return Look('', sha256(content).hexdigest(), size, small)


def _small(content: bytes) -> tuple[tuple[int, int], np.ndarray]:
    """Size and small picture of a file.

    Raises:
        Exception: What the decoder raises where it is no image, or not whole.
    """
    with open_image(BytesIO(content)) as image:
        size = tuple(sorted(image.size))
        if image.format in _LENIENT or image.mode in _NO_COLOURS:
            problem = check_header(BytesIO(content))
            if problem:
                raise ValueError(problem)
        image.draft('RGB', (8 * _SIDE, 8 * _SIDE))
        upright = ImageOps.exif_transpose(image).convert('RGB')
    small = upright.resize((_SIDE, _SIDE), Image.Resampling.BOX)
    return size, np.asarray(small).reshape(-1)


def _problem_of_name(path: str) -> str:
    """Why a path cannot be a line of a list, if it cannot."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return 'its name is not in UTF-8: rename it'
    return 'its name has a line break: rename it' * ('\n' in path)


def keys_by(values: dict) -> dict:
    """Return the keys that have each value."""
    keys = defaultdict(list)
    for key, value in values.items():
        keys[value].append(key)
    return keys


def _close(paths: list[str], looks: dict[str, Look]) -> list[str]:
    """Return the files that are much like another one."""
    small = np.stack([looks[path].small for path in paths]).astype(np.int16)
    means = small.mean(1)
    order = means.argsort()
    ends = np.searchsorted(means[order], means[order] + _TOLERANCE, 'right')
    close = set()
    for i, end in enumerate(ends):
        near = order[i + 1 : end]
        for step in (64, 1):  # most differ in the first few values
            away = small[near, ::step] - small[order[i], ::step]
            near = near[np.abs(away).max(1) <= _TOLERANCE]
        close |= {*near, order[i]} if len(near) else set()
    return [paths[i] for i in sorted(close)]


def _digest_pixels(path: str) -> str:
    content = read_bytes(path)
    # OpenCV's JPEG decoder rounds in another way than that of most programs
    is_jpeg = content.startswith(b'\xff\xd8')
    image = by_pillow(content) if is_jpeg else decode(content)
    return sha256(repr(image.shape).encode() + image.tobytes()).hexdigest()
