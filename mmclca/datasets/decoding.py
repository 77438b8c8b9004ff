# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Decode image files to BGR pixels, within a limit on memory.

Neither an import nor a call changes the limits that Pillow keeps for the
whole process.
"""

import logging
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from ctypes import CDLL
from functools import lru_cache
from io import BytesIO
from math import ceil
from threading import Lock, Semaphore, local
from typing import BinaryIO

import cv2
import numpy as np
from packaging.version import Version
from PIL import Image, ImageOps, PngImagePlugin, TiffImagePlugin

from mmclca.errors import Error
from mmclca.utils.files import read_bytes
from mmclca.utils.messages import printable

from .image_kinds import RAW, TIFF_ADVICE, describe_format, is_raw

Image.init()  # registers Pillow's plugins
# accepted formats; for some others Pillow runs programs
FORMATS = ['JPEG', 'PNG', 'TIFF', 'WEBP', 'BMP', 'PPM', 'GIF']
with suppress(ImportError):  # Pillow 11.3
    from PIL import AvifImagePlugin

    FORMATS += ['AVIF'] * AvifImagePlugin.SUPPORTED
with suppress(ImportError):  # optional package for photos of phones
    from pi_heif import register_heif_opener

    register_heif_opener()
    FORMATS.append('HEIF')

# an A4 scan at 1200 dpi has 139 million pixels
MAX_PIXELS = 200_000_000
# bytes per image, and for all images decoded at the same time
MAX_DECODED = 3 * MAX_PIXELS
_SHARES = 16  # MAX_DECODED is reserved in so many parts
_FREE, _TURN, _THREAD = Semaphore(_SHARES), Lock(), local()
_LARGE = 2**24  # bytes of an image whose memory is returned to the system
# copies of an image in a decoder, as measured
_COPIES = dict(WEBP=3, AVIF=2, HEIF=2)
_WHITE = 255, 255, 255, 255
_ROWS = 256  # rows converted at a time, to save memory
# unknown to older versions of OpenCV; Pillow refuses truncated files
BY_PILLOW = ['HEIF', 'AVIF', 'GIF']
if Version(cv2.__version__) < Version('5'):  # ignores EXIF data of WebP
    BY_PILLOW.append('WEBP')
# OpenCV reads every complete file; Pillow fills up truncated ones
_STRICT = 'PNG', 'JPEG', 'MPO', 'BMP', 'PPM'
# 16-bit modes, which Pillow clips when it converts them
_DEEP = ('I', 'I;16', 'I;16L', 'I;16B', 'I;16N')
_SPREAD = {'L;2': 85, 'L;4': 17}  # from 2 and 4 bits to 8
_ANY_DEPTH = cv2.IMREAD_COLOR | cv2.IMREAD_ANYDEPTH


class UndecodedError(Error):
    """Unreadable or too large image."""


class TiffFile(TiffImagePlugin.TiffImageFile):
    """TIFF file without Pillow's limit on pixels, a setting of the process."""

    def load_prepare(self) -> None:
        """Allocate the pixels first, else Pillow checks their number."""
        if hasattr(self, '_tile_size') and vars(self).get('_im') is None:
            self.im = Image.core.new(self.mode, self._tile_size)
        super().load_prepare()


@contextmanager
def reserved(
    image: Image.Image, draft: tuple[str, tuple[int, int]] | None = None
) -> Iterator[None]:
    """Reserve memory to decode an image; wait while other threads use it.

    ``draft`` is the mode and size for ``image.draft``, which decodes JPEG
    files at a fraction of their size.
    """
    size = decoded_bytes(image)
    if draft is not None:
        mode, reduced_size = draft
        image.draft(mode, reduced_size)
        if 'progressive' not in image.info:
            size = decoded_bytes(image)
    wanted = min(_SHARES, ceil(_SHARES * size / MAX_DECODED))
    reserved_shares = vars(_THREAD).get('held', 0)
    if (
        reserved_shares >= wanted
    ):  # reserved by this thread in an outer context
        yield
        return
    with _TURN:  # one thread at a time, else two may wait for each other
        for _ in range(reserved_shares, wanted):
            _FREE.acquire()
    _THREAD.held = wanted
    try:
        yield
    finally:
        if size > _LARGE:  # glibc keeps freed blocks for each thread
            with suppress(AttributeError, OSError, TypeError):  # other C
                CDLL(None).malloc_trim(0)
        _THREAD.held = reserved_shares
        _FREE.release(wanted - reserved_shares)


def decoded_bytes(image: Image.Image) -> int:
    """Estimate the memory of a decoded image in bytes.

    Width x height x channels (at least 3) x bytes per sample x copies, which
    are 2 for progressive JPEG files. TIFF files need at least one tile.
    """
    (width, height), channels = image.size, len(image.getbands())
    tiles = vars(image).get('tile', ())[:1]
    depth = 2 if ';16' in str([tile[3] for tile in tiles]) else 1
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        # 256 and 257: size, 322 and 323: tile, 277: samples, 258: their bits
        tags = image.tag_v2
        width, height = max(tags[256], tags.get(322, 0)), tags[257]
        height = max(height, tags.get(323, 0))
        channels = max(channels, tags.get(277, 1))
        depth = max(8, *tags.get(258, (8,))) / 8
    copies = 2 if 'progressive' in image.info else 1
    copies = _COPIES.get(image.format or '', copies)
    return int(width * height * max(3, channels) * depth) * copies


def open_image(file: BinaryIO) -> Image.Image:
    """Open an image file at its beginning, without decoding it.

    Raises:
        UndecodedError: If the format is not in ``FORMATS``, or the decoded
            image would exceed ``MAX_DECODED`` bytes.
    """
    start = file.read(160)
    try:
        image = _open(file, start[:16])
        if image is None:
            raise UndecodedError(describe_format(start))
        _check_size(image)
        if isinstance(image, TiffImagePlugin.TiffImageFile):
            _check_tiff(start, image.tag_v2)
        return image
    except UndecodedError:
        raise
    except Exception as error:  # decoders raise many types
        raise UndecodedError(f'{type(error).__name__}: {error}') from error


def _open(file: BinaryIO, start: bytes) -> Image.Image | None:
    """Open an image with the first plugin that accepts it, else return None.

    ``Image.open`` would apply Pillow's limit on pixels.
    """
    for name in FORMATS:
        plugin, accepts = Image.OPEN[name]
        plugin = TiffFile if name == 'TIFF' else plugin
        with suppress(SyntaxError, IndexError, TypeError, struct.error):
            if accepts is None or accepts(start) is True:
                file.seek(0)
                return plugin(file, '')
    return None


def _check_tiff(start: bytes, tags: Mapping) -> None:
    """Refuse TIFF variants that decoders read differently or not."""
    if is_raw(start, tags):
        raise UndecodedError(RAW)
    # 258: bits per sample, 259: compression, 262: color space, 284: planes,
    # 339: sample format
    if 262 not in tags:  # required; Pillow assumes that white is zero
        variant = 'an unknown color space'
    elif 2 in tags.get(339, ()):
        variant = 'signed pixel values'
    elif tags.get(284) == 2 and max(tags.get(258, (1,))) > 8:
        variant = 'separate planes of 16 bits'
    elif tags[262] == 6 and tags.get(259, 1) == 1:
        variant = 'uncompressed YCbCr'
    else:
        return
    raise UndecodedError(f'TIFF with {variant}: {TIFF_ADVICE}')


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
    """Decode an image to BGR (H, W, 3), uint8, and apply its EXIF orientation.

    OpenCV decodes as in mmcv's ``LoadImageFromFile``: gray, palette, CMYK and
    16-bit images become 8-bit colors. Pillow decodes formats that OpenCV
    does not support (HEIC with pi-heif, AVIF, GIF) and alpha channels.
    With ``over_white``, as in :class:`LoadPhoto`, transparent pixels are
    blended with white, and 10- to 14-bit values are scaled by their range.

    Raises:
        UndecodedError: See :func:`open_image`, or if the file is damaged.
    """
    with open_image(BytesIO(content)) as image, reserved(image):
        file_format, has_alpha = image.format, image.has_transparency_data
        if over_white and (
            has_alpha
            or file_format in BY_PILLOW
            or image.mode in ('F', *_DEEP)
        ):
            return decode_by_pillow(content)
        flag = _ANY_DEPTH if over_white else cv2.IMREAD_COLOR
        with suppress(cv2.error):
            pixels = cv2.imdecode(np.frombuffer(content, np.uint8), flag)
            if pixels is not None and pixels.dtype in (np.uint8, np.uint16):
                return to_8_bits(pixels)
        if file_format in _STRICT:
            raise UndecodedError(
                f'OpenCV cannot decode this {file_format} file'
            )
        return decode_by_pillow(content)


def to_8_bits(image: np.ndarray) -> np.ndarray:
    """Scale a 16-bit image to 8 bits.

    The assumed range is the smallest even number of bits, at least 8, for the
    largest value. Warn if it is below 16.
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
    """Log a warning, but each text only once."""
    from mmengine.logging import print_log  # imports torch

    print_log(printable(message), 'current', logging.WARNING)


def read_bgr(path: str) -> np.ndarray:
    """Read an image file, see :func:`decode`.

    Raises:
        OSError: If the file cannot be read.
        UndecodedError: If the image cannot be decoded; names the file.
    """
    try:
        return decode(read_bytes(path))
    except UndecodedError as error:
        raise UndecodedError(f'{path}: {error}') from error


def decode_by_pillow(content: bytes) -> np.ndarray:
    """Decode an image with Pillow alone, see :func:`convert_to_bgr`."""
    with open_image(BytesIO(content)) as image:
        return convert_to_bgr(image, in_place=True)


def convert_to_bgr(image: Image.Image, in_place: bool = False) -> np.ndarray:
    """Convert a Pillow image to upright BGR over white, see :func:`decode`.

    Raises:
        UndecodedError: If the image is too large or damaged, or its mode is
            not supported.
    """
    try:
        _check_size(image)
        with reserved(image):
            # Pillow inverts 8 bits only
            is_negative = (
                isinstance(image, TiffImagePlugin.TiffImageFile)
                and image.mode in _DEEP
                and image.tag_v2[262] == 0
            )
            _follow_standards(image)
            turned = ImageOps.exif_transpose(image, in_place=in_place)
            upright = _to_bgr(image if in_place else turned)
            return 255 - upright if is_negative else upright
    except UndecodedError:
        raise
    except Exception as error:  # decoders raise many types
        raise UndecodedError(f'Pillow cannot decode it: {error}') from error


def _follow_standards(image: Image.Image) -> None:
    """Load an image, and correct what other decoders read differently."""
    tiles = ()
    if isinstance(image, PngImagePlugin.PngImageFile):
        tiles = image.tile[:1]
    for tile in tiles:
        if 'transparency' in image.info and tile[3] in _SPREAD:
            # Pillow scales the gray values, but not the transparent one
            image.info['transparency'] *= _SPREAD[tile[3]]
    image.load()
    for key in ('xmp', 'XML:com.adobe.xmp'):
        # OpenCV and browsers take the orientation from EXIF alone
        image.info.pop(key, None)


def _to_bgr(upright: Image.Image) -> np.ndarray:
    if upright.mode in _DEEP:
        gray = np.asarray(upright)
        if gray.min() >= 0 and gray.max() < 2**16:
            gray = to_8_bits(gray.astype(np.uint16))
            return cv2.cvtColor(gray, cv2.COLOR_GRAY2BGR)
    if upright.mode in ('F', 'I'):
        raise UndecodedError(f'32-bit pixel values: {TIFF_ADVICE}')
    width, height = upright.size
    image = np.empty((height, width, 3), np.uint8)
    for top in range(0, height, _ROWS):
        part = crop_rows(upright, top, min(top + _ROWS, height))
        if part.has_transparency_data:
            white = Image.new('RGBA', part.size, _WHITE)
            part = Image.alpha_composite(white, part.convert('RGBA'))
        image[top : top + _ROWS] = np.asarray(part.convert('RGB'))[..., ::-1]
    return image


def crop_rows(image: Image.Image, top: int, bottom: int) -> Image.Image:
    """Copy some rows of an image; ``crop`` would apply Pillow's limit."""
    size, box = (image.width, bottom - top), (0, top, image.width, bottom)
    return image.resize(size, Image.Resampling.NEAREST, box)
