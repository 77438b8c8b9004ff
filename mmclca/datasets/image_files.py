# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Image files: their endings, and whether they can be read."""

import os
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import mmcv
from mmengine import fileio
from PIL import Image, UnidentifiedImageError

from mmclca.utils.image_suffixes import IMAGE_SUFFIXES as IMAGE_SUFFIXES

MISSING = 'missing'
EMPTY = 'empty file'

# Reading headers waits for the disk or the network, not for the CPU.
_THREADS = 16
_JPEG_END = b'\xff\xd9'
_END_MARKERS = dict(PNG=b'IEND\xaeB`\x82', JPEG=_JPEG_END, MPO=_JPEG_END)
_TAIL = 4096


def find_problem(path):
    """Decode an image, as strictly as Pillow and as training does.

    OpenCV, which training uses, fills up a truncated file in silence; Pillow
    refuses it.

    Args:
        path (str): Anything that mmengine reads.

    Returns:
        str: What is wrong with it: ``MISSING``, ``EMPTY`` or what the decoder
        says; empty if nothing is.
    """
    try:
        return _decode(fileio.get(path))
    except Exception as error:  # what an unreadable file gives is open
        return _reason(error)


def glance_at_files(paths):
    """Look for images that cannot be read, by their first and last bytes.

    See :func:`glance`. Files are opened in several threads.

    Args:
        paths (Sequence[str]): Files.

    Returns:
        list[str]: For each, what :func:`find_problem` returns.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(_glance_at_file, paths))


def glance(file):
    """Look for what is wrong with an image, decoding it only on suspicion.

    A PNG or JPEG file that Pillow recognizes by its header and that ends as
    it must, save for padding with zeros, is taken for whole. Anything else is
    decoded: rare formats, and what ends otherwise, which may still be fine.

    Args:
        file (BinaryIO): An image, at its beginning.

    Returns:
        str: What :func:`find_problem` returns.
    """
    if _looks_whole(file):
        return ''
    file.seek(0)
    return _decode(file.read())


def _glance_at_file(path):
    try:
        with open(path, 'rb') as file:
            return glance(file)
    except OSError as error:
        return _reason(error)


def _looks_whole(file):
    try:
        marker = _END_MARKERS.get(Image.open(file).format)
    except Exception:  # a decoder may raise anything
        return False
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _TAIL, 0))
    return bool(marker) and file.read().rstrip(b'\0').endswith(marker)


def _decode(content):
    if not content:
        return EMPTY
    try:
        file = BytesIO(content)
        with Image.open(file) as image:
            # It stands at the first scan. Zeros after a cut pass for pixels.
            if image.format == 'JPEG' and _JPEG_END not in file.read():
                return 'cut short: a JPEG file without its end marker'
            image.load()
        if mmcv.imfrombytes(content) is None:
            return 'OpenCV cannot decode it'
    except UnidentifiedImageError:
        return f'no image: it begins with {content[:12]!r}'
    except Exception as error:  # a decoder may raise anything
        return _reason(error)
    return ''


def _reason(error):
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return MISSING
    return f'{type(error).__name__}: {error}'
