# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""From the content of an image file to pixels, the same everywhere."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from io import BytesIO
from math import ceil
from threading import Lock, Semaphore, local
from typing import BinaryIO

import cv2
import mmcv
import numpy as np
from mmcv.transforms import BaseTransform
from mmengine.logging import print_log
from PIL import Image, ImageOps, UnidentifiedImageError

from mmclca.registry import TRANSFORMS
from mmclca.utils.files import read_bytes
from mmclca.utils.messages import printable

from .image_kinds import RAW, is_raw, kind_of

# all that is read; for some others Pillow runs programs
FORMATS = ['JPEG', 'PNG', 'TIFF', 'WEBP', 'BMP', 'PPM', 'GIF']
with suppress(ImportError):  # Pillow 11.3
    from PIL import AvifImagePlugin

    FORMATS += ['AVIF'] * AvifImagePlugin.SUPPORTED
with suppress(ImportError):  # an extra, for the photographs of telephones
    from pillow_heif import register_heif_opener

    register_heif_opener()
    FORMATS.append('HEIF')

# a scan of A4 at 1200 dpi has 139 million
MAX_PIXELS = 200_000_000
Image.MAX_IMAGE_PIXELS = MAX_PIXELS  # else Pillow warns of fewer
# of one image, and of the images of all threads together
MAX_DECODED = 3 * MAX_PIXELS
_SHARES = 16  # threads wait for parts of it
_FREE, _TURN, _THREAD = Semaphore(_SHARES), Lock(), local()
# decoders that keep further copies of an image, as measured
_COPIES = dict(WEBP=3, AVIF=2, HEIF=2)
_BLOCK = 2**26
_WHITE = 255, 255, 255, 255
_ROWS = 256  # rows converted at a time, to save memory
# formats that older versions of OpenCV do not know, and that Pillow decodes
# wholly or not at all
BY_PILLOW = ('HEIF', 'AVIF', 'GIF')
# formats of which OpenCV reads every file that is whole; Pillow fills up
_STRICT = 'PNG', 'JPEG', 'MPO', 'BMP', 'PPM'
# modes of 16 bits, which Pillow clips when it converts them
_DEEP = ('I', 'I;16', 'I;16L', 'I;16B', 'I;16N')
_ANY_DEPTH = cv2.IMREAD_COLOR | cv2.IMREAD_ANYDEPTH


class UndecodedError(ValueError):
    """An image that is not read, or cannot be decoded."""


@contextmanager
def reserved(image: Image.Image, draft: tuple | None = None) -> Iterator[None]:
    """Reserve memory for a decoded image; wait while other threads use it.

    Args:
        image (Image.Image): The image, not decoded yet.
        draft (tuple, optional): Mode and size for ``image.draft``, by which
            JPEG files are decoded smaller. Defaults to None.
    """
    size = decoded_bytes(image)
    if draft:
        image.draft(*draft)
        if 'progressive' not in image.info:
            size = decoded_bytes(image)
    # larger blocks than the allocator keeps, so that the system gets them back
    Image.core.set_block_size(_BLOCK)
    wanted = min(_SHARES, ceil(_SHARES * size / MAX_DECODED))
    held = vars(_THREAD).get('held', 0)
    if held >= wanted:  # this thread has reserved it already
        yield
        return
    with _TURN:  # one thread at a time gathers its shares
        for _ in range(held, wanted):
            _FREE.acquire()
    _THREAD.held = wanted
    try:
        yield
    finally:
        _THREAD.held = held
        _FREE.release(wanted - held)


def decoded_bytes(image: Image.Image) -> int:
    """Return width x height x channels x bytes per sample of an image.

    At least three channels count, progressive JPEG files twice, and the
    formats of ``_COPIES`` as often as there. A tile of a TIFF file counts in
    place of a smaller image.
    """
    (width, height), channels = image.size, len(image.getbands())
    tiles = vars(image).get('tile', ())[:1]
    depth = 2 if ';16' in str([tile[3] for tile in tiles]) else 1
    if image.format == 'TIFF':
        tags = image.tag_v2  # of the image, a tile, its samples and their bits
        width, height = max(tags[256], tags.get(322, 0)), tags[257]
        height = max(height, tags.get(323, 0))
        channels = max(channels, tags.get(277, 1))
        depth = max(8, *tags.get(258, (8,))) / 8
    copies = 2 if 'progressive' in image.info else 1
    copies = _COPIES.get(image.format, copies)
    return int(width * height * max(3, channels) * depth) * copies


def open_image(file: BinaryIO) -> Image.Image:
    """Open an image, of which only the first bytes are read.

    Args:
        file (BinaryIO): One of ``FORMATS``, at its beginning.

    Raises:
        UndecodedError: If it is of another kind, or takes more memory than
            ``MAX_DECODED`` once decoded.
    """
    try:
        image = Image.open(file, formats=FORMATS)
        _check_size(image)
        if image.format == 'TIFF' and is_raw(_start(file), image.tag_v2):
            raise UndecodedError(RAW)
        return image
    except UnidentifiedImageError:
        raise UndecodedError(kind_of(_start(file))) from None
    except UndecodedError:
        raise
    except Exception as error:  # a decoder may raise anything
        raise UndecodedError(f'{type(error).__name__}: {error}') from error


def _start(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read(160)


def _check_size(image: Image.Image) -> None:
    size = decoded_bytes(image)
    if 0 in image.size:
        raise UndecodedError(f'empty: {image.width} x {image.height} pixels')
    if size > MAX_DECODED:
        raise UndecodedError(
            f'{image.width} x {image.height} pixels take {size / 1e6:.0f} MB '
            f'when decoded, more than the limit of {MAX_DECODED / 1e6:.0f} MB '
            f'({MAX_PIXELS / 1e6:.0f} million pixels); save it smaller'
        )


def decode(content: bytes, over_white: bool = True) -> np.ndarray:
    """Decode an image and apply its EXIF orientation.

    OpenCV decodes as in mmcv's ``LoadImageFromFile``: gray, palette, CMYK and
    16-bit images become 8-bit colors. Pillow decodes formats that OpenCV
    does not support (HEIC with pillow-heif, AVIF, GIF) and alpha channels.

    Args:
        content (bytes): The content of a file.
        over_white (bool): Whether to read as :class:`LoadPhotograph` does:
            transparent pixels over white, and values of 10 to 14 bits in 16
            scaled by their range. Otherwise as ``LoadImageFromFile`` does.
            Defaults to True.

    Returns:
        np.ndarray: BGR image (H, W, 3), uint8.

    Raises:
        UndecodedError: See :func:`open_image`, or if neither can decode it.
    """
    with open_image(BytesIO(content)) as image, reserved(image):
        kind, has_alpha = image.format, image.has_transparency_data
        if over_white and (
            has_alpha or kind in BY_PILLOW or image.mode in ('F', *_DEEP)
        ):
            return by_pillow(content)
        flag = _ANY_DEPTH if over_white else 'color'
        with suppress(cv2.error):
            found = mmcv.imfrombytes(content, flag)
            if found is not None and found.dtype in (np.uint8, np.uint16):
                return to_8_bits(found)
        if kind in _STRICT:
            raise UndecodedError(f'OpenCV cannot decode this {kind} file')
        return by_pillow(content)


def to_8_bits(image: np.ndarray) -> np.ndarray:
    """Scale a 16-bit image to 8 bits, from a range of 8 to 16 bits.

    The range is the smallest even number of bits that holds the largest
    value; a warning names it.
    """
    if image.dtype == np.uint8:
        return image
    bits = max(8, int(image.max()).bit_length())
    bits += bits % 2
    if bits < 16:
        warn_once(
            f'16-bit images with values below {2**bits} are read as '
            f'{bits}-bit data; save images that are just dark as 8-bit files.'
        )
    return (image >> (bits - 8)).astype(np.uint8)


@lru_cache
def warn_once(message: str) -> None:
    """Log a warning, the same one only once."""
    print_log(printable(message), 'current', logging.WARNING)


def read_bgr(path: str) -> np.ndarray:
    """Read an image as :class:`LoadPhotograph` does.

    Returns:
        np.ndarray: See :func:`decode`.

    Raises:
        OSError: If there is no such file.
        UndecodedError: If it is no image; names it.
    """
    try:
        return decode(read_bytes(path))
    except UndecodedError as error:
        raise UndecodedError(f'{path}: {error}') from error


def by_pillow(content: bytes) -> np.ndarray:
    """Decode an image with Pillow alone, transparent pixels over white.

    Returns:
        np.ndarray: See :func:`decode`.

    Raises:
        UndecodedError: If Pillow cannot decode it, or not to 8-bit colours.
    """
    with open_image(BytesIO(content)) as image:
        return bgr_of(image, in_place=True)


def bgr_of(image: Image.Image, in_place: bool = False) -> np.ndarray:
    """Convert a Pillow image to BGR, see :func:`decode`.

    Args:
        image (Image.Image): The image.
        in_place (bool): Whether to rotate it in place. Defaults to False.

    Raises:
        UndecodedError: If it is too large, damaged or has no colors.
    """
    try:
        _check_size(image)
        with reserved(image):
            turned = ImageOps.exif_transpose(image, in_place=in_place)
            return _to_bgr(image if in_place else turned)
    except UndecodedError:
        raise
    except Exception as error:  # a decoder may raise anything
        raise UndecodedError(f'Pillow cannot decode it: {error}') from error


def _to_bgr(upright: Image.Image) -> np.ndarray:
    if upright.mode in _DEEP:
        grey = np.asarray(upright)
        if grey.min() >= 0 and grey.max() < 2**16:
            grey = to_8_bits(grey.astype(np.uint16))
            return cv2.cvtColor(grey, cv2.COLOR_GRAY2BGR)
    if upright.mode in ('F', 'I'):
        raise ValueError(f'pixel mode {upright.mode} is not supported')
    width, height = upright.size
    image = np.empty((height, width, 3), np.uint8)
    for top in range(0, height, _ROWS):
        part = upright.crop((0, top, width, min(top + _ROWS, height)))
        if part.has_transparency_data:
            white = Image.new('RGBA', part.size, _WHITE)
            part = Image.alpha_composite(white, part.convert('RGBA'))
        image[top : top + _ROWS] = np.asarray(part.convert('RGB'))[..., ::-1]
    return image


@TRANSFORMS.register_module()
class LoadPhotograph(BaseTransform):
    """Read an image as :func:`decode` does, for a pipeline.

    It stands where ``LoadImageFromFile`` does, and gives the same pixels but
    where an image has an alpha channel; it also reads HEIC, with pillow-heif.
    """

    def transform(self, results: dict) -> dict:
        """Add the image of a sample.

        Args:
            results (dict): A sample with ``img_path``.

        Returns:
            dict: With ``img`` (H, W, 3), BGR, uint8, ``img_shape`` and
            ``ori_shape``.

        Raises:
            OSError: If there is no such file.
            UndecodedError: If it is no image; names it.
        """
        image = read_bgr(results['img_path'])
        shape = image.shape[:2]
        return dict(results, img=image, img_shape=shape, ori_shape=shape)

    def __repr__(self):
        return f'{type(self).__name__}()'
