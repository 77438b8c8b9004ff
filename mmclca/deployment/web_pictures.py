# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Small pictures of photos, within a web page."""

from base64 import b64encode
from io import BytesIO
from pathlib import Path

from PIL import Image

from mmclca.datasets.decoding import decode

SIDE = 320  # pixels; about 20 kB
QUALITY = 80


def encode_picture(photo: Path) -> str:
    """Return a reduced photo as the address of an image (data URI).

    Raises:
        OSError: If the photo cannot be read.
        Error: If it is damaged.
    """
    image = Image.fromarray(decode(photo.read_bytes())[..., ::-1])
    image.thumbnail((SIDE, SIDE))
    content = BytesIO()
    image.save(content, 'JPEG', quality=QUALITY, optimize=True)
    return f'data:image/jpeg;base64,{b64encode(content.getvalue()).decode()}'
