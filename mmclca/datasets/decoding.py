# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""From the content of an image file to pixels, the same everywhere."""

from contextlib import suppress
from io import BytesIO
from typing import BinaryIO

import cv2
import mmcv
import numpy as np
from mmcv.transforms import BaseTransform
from PIL import Image, ImageOps, UnidentifiedImageError

from mmclca.registry import TRANSFORMS
from mmclca.utils.files import read_bytes

# all that is read; for some others Pillow runs programs
FORMATS = ['JPEG', 'PNG', 'TIFF', 'WEBP', 'BMP', 'PPM']
with suppress(ImportError):  # an extra, for the photographs of telephones
    from pillow_heif import register_heif_opener

    register_heif_opener()
    FORMATS.append('HEIF')

# a scan of A4 at 1200 dpi has 139 million
MAX_PIXELS = 200_000_000
Image.MAX_IMAGE_PIXELS = MAX_PIXELS  # else Pillow warns of fewer
# where a file begins with its kind
_HEIC = tuple(b'ftyp' + kind for kind in (b'heic', b'heix', b'mif1', b'msf1'))
_WHITE = 255, 255, 255, 255
# formats that OpenCV does not know, and Pillow decodes wholly or not at all
BY_PILLOW = ('HEIF',)
# formats of which OpenCV reads every file that is whole; Pillow fills up
_STRICT = 'PNG', 'JPEG', 'MPO', 'BMP', 'PPM'
# what Pillow makes colours of by scaling; it cuts off the values of others
_MODES = ('1', 'L', 'LA', 'P', 'PA', 'RGB', 'RGBA', 'RGBX', 'CMYK', 'YCbCr')


class UndecodedError(ValueError):
    """An image that is not read, or cannot be decoded."""


def open_image(file: BinaryIO) -> Image.Image:
    """Open an image, of which only the first bytes are read.

    Args:
        file (BinaryIO): One of ``FORMATS``, at its beginning.

    Raises:
        UndecodedError: If it is of another kind, or has more pixels than
            ``MAX_PIXELS``.
    """
    try:
        image = Image.open(file, formats=FORMATS)
    except UnidentifiedImageError:
        file.seek(0)
        start = file.read(12)
        if start[4:] in _HEIC:
            reason = 'HEIC, which needs: pip install "mmclca[heic]"'
        else:
            reason = f'no image: it begins with {start!r}'
        raise UndecodedError(reason) from None
    except Exception as error:  # a decoder may raise anything
        raise UndecodedError(f'{type(error).__name__}: {error}') from error
    if image.width * image.height > MAX_PIXELS:
        raise UndecodedError(
            f'{image.width} x {image.height} pixels, and at most '
            f'{MAX_PIXELS / 1e6:.0f} million are read: save it smaller'
        )
    return image


def decode(content: bytes, over_white: bool = True) -> np.ndarray:
    """Decode an image, turned as its EXIF data say.

    OpenCV decodes, as in mmcv's ``LoadImageFromFile``: greys, palettes, CMYK
    and 16 bits become 8-bit colours. Pillow decodes what OpenCV cannot (HEIC
    with pillow-heif), and what has an alpha channel.

    Returns:
        np.ndarray: BGR image (H, W, 3), uint8.

    Raises:
        UndecodedError: See :func:`open_image`; or neither can decode it.
    """
    with open_image(BytesIO(content)) as image:
        kind, has_alpha = image.format, image.has_transparency_data
    if over_white and has_alpha:
        return by_pillow(content)
    with suppress(cv2.error):
        image = mmcv.imfrombytes(content)
        if image is not None:
            return image
    if kind in _STRICT:
        raise UndecodedError(f'OpenCV cannot decode this {kind} file')
    return by_pillow(content)


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
        try:
            return _to_bgr(image)
        except Exception as error:  # a decoder may raise anything
            raise UndecodedError(
                f'neither OpenCV nor Pillow can decode it: {error}'
            ) from error


def _to_bgr(image: Image.Image) -> np.ndarray:
    if image.mode not in _MODES:
        raise ValueError(f'pixels of mode {image.mode}')
    upright = ImageOps.exif_transpose(image)
    if upright.has_transparency_data:
        upright = upright.convert('RGBA')
        white = Image.new('RGBA', upright.size, _WHITE)
        upright = Image.alpha_composite(white, upright)
    return np.asarray(upright.convert('RGB'))[..., ::-1].copy()


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
