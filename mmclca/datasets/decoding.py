# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""From the content of an image file to pixels, the same everywhere."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from io import BytesIO
from threading import Condition, local
from typing import BinaryIO

import cv2
import mmcv
import numpy as np
from mmcv.transforms import BaseTransform
from mmengine.logging import print_log
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

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
# Pillow clips these when it converts them
_DEEP = ('I', 'I;16', 'I;16L', 'I;16B', 'I;16N')
_DEPTHS = 8, 10, 12, 14, 16  # bits per sample of cameras and scanners
_ANY_DEPTH = cv2.IMREAD_COLOR | cv2.IMREAD_ANYDEPTH
# tags of TIFF
_WIDTH, _HEIGHT, _BITS, _SAMPLES = 256, 257, 258, 277
_TILE_WIDTH, _TILE_HEIGHT = 322, 323
_MAX_SAMPLE_VALUES = 281, 341


class UndecodedError(ValueError):
    """An image that is not read, or cannot be decoded."""


class _Memory:
    """Bytes that the threads of this process share.

    Args:
        total (int): Number of bytes.
    """

    def __init__(self, total: int):
        self.total = self.free = total
        self.changed = Condition()
        self.of_thread = local()

    @contextmanager
    def reserve(self, size: int) -> Iterator[None]:
        """Wait until there is room, unless this thread has reserved it."""
        held = vars(self.of_thread).get('held', 0)
        more = max(0, min(size, self.total) - held)
        with self.changed:
            self.changed.wait_for(lambda: self.free >= more)
            self.free -= more
        self.of_thread.held = held + more
        try:
            yield
        finally:
            self.of_thread.held = held
            with self.changed:
                self.free += more
                self.changed.notify_all()


_MEMORY = _Memory(MAX_DECODED)


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
    with _MEMORY.reserve(size):
        yield


def decoded_bytes(image: Image.Image) -> int:
    """Return width x height x channels x bytes per sample of an image.

    At least three channels count, progressive JPEG files twice, and the
    formats of ``_COPIES`` as often as there. A tile of a TIFF file counts in
    place of a smaller image.
    """
    (width, height), channels = image.size, len(image.getbands())
    is_deep = ';16' in str([one[3] for one in image.tile[:1]])
    depth = 2 if is_deep or _largest(image) > 255 else 1
    if image.format == 'TIFF':
        tags = image.tag_v2
        width = max(tags[_WIDTH], tags.get(_TILE_WIDTH, 0))
        height = max(tags[_HEIGHT], tags.get(_TILE_HEIGHT, 0))
        channels = max(channels, tags.get(_SAMPLES, 1))
        depth = max(1, *tags.get(_BITS, (8,))) / 8
    copies = 2 if 'progressive' in image.info else 1
    copies = _COPIES.get(image.format, copies)
    return int(width * height * max(3, channels) * max(1, depth)) * copies


def check_size(image: Image.Image) -> None:
    """Refuse an image that would take too much memory once decoded.

    Raises:
        UndecodedError: If it has more pixels than ``MAX_PIXELS``, or more
            bytes once decoded than ``MAX_DECODED``.
    """
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise UndecodedError(
            f'{width} x {height} pixels, and at most '
            f'{MAX_PIXELS / 1e6:.0f} million are read: save it smaller'
        )
    size = decoded_bytes(image)
    if size > MAX_DECODED:
        raise UndecodedError(
            f'{width} x {height} pixels take {size / 1e6:.0f} MB once '
            f'decoded, and at most {MAX_DECODED / 1e6:.0f} MB are read: save '
            'it smaller, as a JPEG file'
        )


def open_image(file: BinaryIO) -> Image.Image:
    """Open an image, of which only the first bytes are read.

    Args:
        file (BinaryIO): One of ``FORMATS``, at its beginning.

    Raises:
        UndecodedError: If it is of another kind, or too large; see
            :func:`check_size`.
    """
    try:
        image = Image.open(file, formats=FORMATS)
        check_size(image)
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


def decode(content: bytes, over_white: bool = True) -> np.ndarray:
    """Decode an image, turned as its EXIF data say.

    OpenCV decodes, as in mmcv's ``LoadImageFromFile``: greys, palettes, CMYK
    and 16 bits become 8-bit colours. Pillow decodes what OpenCV cannot (HEIC
    with pillow-heif, AVIF, GIF), and what has an alpha channel.

    Args:
        content (bytes): The content of a file.
        over_white (bool): Whether to read as :class:`LoadPhotograph` does:
            transparent pixels over white, and values of 10 to 14 bits in 16
            scaled by their range. Otherwise as ``LoadImageFromFile`` does.
            Defaults to True.

    Returns:
        np.ndarray: BGR image (H, W, 3), uint8.

    Raises:
        UndecodedError: See :func:`open_image`; or neither can decode it.
    """
    with open_image(BytesIO(content)) as image, reserved(image):
        kind = image.format
        if over_white and (
            kind in BY_PILLOW
            or image.has_transparency_data
            or (kind == 'TIFF' and image.mode in _DEEP)  # unknown to OpenCV
        ):
            return by_pillow(content)
        with suppress(cv2.error):
            found = _by_opencv(content, _largest(image), over_white)
            if found is not None:
                return found
        if kind in _STRICT:
            raise UndecodedError(f'OpenCV cannot decode this {kind} file')
        return by_pillow(content)


def _by_opencv(content: bytes, largest: int, scaled: bool) -> np.ndarray:
    if scaled:
        image = mmcv.imfrombytes(content, _ANY_DEPTH)
        if image is None or image.dtype == np.uint8:
            return image
        if image.dtype == np.uint16 and _bits(image, largest) < 16:
            return to_8_bits(image, largest)
    return mmcv.imfrombytes(content)


def _largest(image: Image.Image) -> int:
    """Return the largest value that a file declares, 0 if it does not."""
    if image.format == 'PPM' and image.tile:
        last = image.tile[0][3][-1]  # programs write 65535 for any values
        return last if isinstance(last, int) and last < 65535 else 0
    tags = image.tag_v2 if image.format == 'TIFF' else {}
    return int(max(np.max(tags.get(x, 0)) for x in _MAX_SAMPLE_VALUES))


def to_8_bits(image: np.ndarray, largest: int = 0) -> np.ndarray:
    """Scale an image of uint16 by the bits that its values have.

    Args:
        image (np.ndarray): The image.
        largest (int): The largest possible value. Defaults to 0: the largest
            one in the image; a warning says so if it has less than 16 bits.
    """
    bits = _bits(image, largest)
    if not largest and bits < 16:
        warn_once(
            f'Images of 16 bits with values below {2**bits} are read as '
            f'{bits}-bit data; save them as 8 bits if they are only dark.'
        )
    scaled = np.empty(image.shape, np.uint8)
    return np.right_shift(image, bits - 8, out=scaled, casting='unsafe')


def _bits(image: np.ndarray, largest: int) -> int:
    top = min(largest or int(image.max()), 2**16 - 1)
    return next(bits for bits in _DEPTHS if top < 2**bits)


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
    with open_image(BytesIO(content)) as image, reserved(image):
        try:
            largest = _largest(image)
            ImageOps.exif_transpose(image, in_place=True)
            return _to_bgr(image, largest)
        except Exception as error:  # a decoder may raise anything
            raise UndecodedError(
                f'neither OpenCV nor Pillow can decode it: {error}'
            ) from error


def bgr_of(image: Image.Image) -> np.ndarray:
    """Return an image of Pillow as :func:`decode` returns a file.

    Raises:
        UndecodedError: If it is too large, damaged or has no colors.
    """
    try:
        if not isinstance(image, ImageFile.ImageFile):  # decoded already
            return _to_bgr(ImageOps.exif_transpose(image))
        check_size(image)
        with reserved(image):
            return _to_bgr(ImageOps.exif_transpose(image))
    except Exception as error:  # a decoder may raise anything
        raise UndecodedError(f'{type(error).__name__}: {error}') from error


def _to_bgr(upright: Image.Image, largest: int = 0) -> np.ndarray:
    if upright.mode == 'F':
        raise ValueError('pixels of mode F')
    if upright.mode in _DEEP:
        return _deep_to_bgr(np.asarray(upright), largest)
    width, height = upright.size
    image = np.empty((height, width, 3), np.uint8)
    for top in range(0, height, _ROWS):
        bottom = min(top + _ROWS, height)
        part = upright.crop((0, top, width, bottom))
        if part.has_transparency_data:
            white = Image.new('RGBA', part.size, _WHITE)
            part = Image.alpha_composite(white, part.convert('RGBA'))
        image[top:bottom] = np.asarray(part.convert('RGB'))[..., ::-1]
    return image


def _deep_to_bgr(grey: np.ndarray, largest: int) -> np.ndarray:
    if grey.min() < 0 or grey.max() >= 2**16:
        raise ValueError('pixels of mode I beyond 16 bits')
    grey = to_8_bits(grey.astype(np.uint16), largest)
    return cv2.cvtColor(grey, cv2.COLOR_GRAY2BGR)


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
