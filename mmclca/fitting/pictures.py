# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Small copies of photos in a model folder, for its report.

Photos listed in ``photographs.csv`` are not opened by default, because a
folder from elsewhere may name any file. The report shows the copies instead.
"""

import base64
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from safetensors import SafetensorError
from torch import Tensor

from mmclca.apis import TokenReductionInferencer
from mmclca.checkpoints import checksums
from mmclca.checkpoints.gate.folders import read_file
from mmclca.checkpoints.gate.photo_table import PhotoFiles
from mmclca.datasets.decoding import UndecodedError, decode, open_image
from mmclca.utils.files import read_bytes, replace_bytes

SIDE = 160  # longer side in pixels, twice the shown size
QUALITY = 72
JPEG = b'\xff\xd8'


@dataclass
class Pictures:
    """Copies of photos by SHA-256, stored in one file.

    Args:
        file (Path): The file.
        photo_files (PhotoFiles): SHA-256 by photo, and whether to open
            its file.
    """

    file: Path
    photo_files: PhotoFiles

    def __post_init__(self):
        self._copies = {}
        with suppress(FileNotFoundError, SafetensorError, ValueError):
            content = read_file(self.file.parent, self.file.name)
            tensors, _ = checksums.load_tensors(content)
            self._copies = {
                name: encoded
                for name, encoded in tensors.items()
                if encoded.dtype == torch.uint8
            }

    def save(self) -> None:
        """Write all copies to the file."""
        replace_bytes(self.file, checksums.save_tensors(self._copies))

    def thumbnail(self, path: str, alt: str) -> dict:
        """Embed a small upright copy; see :func:`embedded`.

        Without a copy, ``src`` is empty.
        """
        content = self._copy(path, 'jpg', lambda: _jpeg(upright(path), SIDE))
        with suppress(UndecodedError):
            return _element(content, alt)
        return dict(src='', alt=alt)

    def view(
        self, inferencer: TokenReductionInferencer, path: str
    ) -> Tensor | None:
        """Return the model input (3, H, W), BGR, or None without a copy."""
        content = self._copy(path, 'png', lambda: _png(inferencer, path))
        with suppress(UndecodedError):
            image = np.asarray(open_image(BytesIO(content)).convert('RGB'))
            return torch.tensor(image).permute(2, 0, 1).flip(0)
        return None

    def _copy(self, path: str, suffix: str, make: Callable) -> bytes:
        """Make a copy if the photo may be opened, else look it up.

        Without a copy, return empty bytes.
        """
        name = f'{self.photo_files.sha256[path]}.{suffix}'
        if self.photo_files.may_open(path):
            with suppress(OSError, UndecodedError):
                self._copies[name] = torch.frombuffer(
                    bytearray(make()), dtype=torch.uint8
                )
        return self._copies.get(name, torch.empty(0)).numpy().tobytes()


def upright(path: str) -> Image.Image:
    """Read a photo upright.

    JPEG files are decoded at a reduced size, ten times faster.
    """
    content = read_bytes(path)
    if not content.startswith(JPEG):
        return Image.fromarray(decode(content)[..., ::-1])
    image = open_image(BytesIO(content))
    image.draft('RGB', (2 * SIDE, 2 * SIDE))
    return ImageOps.exif_transpose(image)


def _jpeg(image: Image.Image, side: int) -> bytes:
    """Encode an image as JPEG; it is shrunk in place."""
    image.thumbnail((side, side))
    file = BytesIO()
    image.convert('RGB').save(file, 'JPEG', quality=QUALITY, optimize=True)
    return file.getvalue()


def _png(inferencer: TokenReductionInferencer, path: str) -> bytes:
    """Encode the model input for a photo as PNG."""
    packed = inferencer.prepare(path)
    if isinstance(packed, str):
        raise UndecodedError(packed)
    image = packed['inputs'].flip(0).permute(1, 2, 0).contiguous()
    file = BytesIO()
    Image.fromarray(image.numpy()).save(file, 'PNG')
    return file.getvalue()


def _element(content: bytes, alt: str) -> dict:
    """Return HTML attributes for a JPEG file."""
    width, height = open_image(BytesIO(content)).size
    src = f'data:image/jpeg;base64,{base64.b64encode(content).decode()}'
    return dict(src=src, width=width, height=height, alt=alt)


def embedded(image: Image.Image, alt: str, side: int) -> dict:
    """Embed an image as JPEG with at most ``side`` pixels per side.

    Return the attributes of its HTML element, see :func:`_element`; ``alt``
    is the description for screen readers. The image is shrunk in place.
    """
    return _element(_jpeg(image, side), alt)
