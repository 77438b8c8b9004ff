# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Photographs as small pictures inside the page."""

import base64
from dataclasses import dataclass
from io import BytesIO

from PIL import Image, ImageOps

from mmclca.datasets.decoding import UndecodedError, decode, open_image
from mmclca.utils.reading import read_bytes

SIDE = 160  # pixels of the longer side: twice what the page shows
QUALITY = 72
JPEG = b'\xff\xd8'


@dataclass(frozen=True)
class Picture:
    """A picture of the page.

    Args:
        src (str): Address that holds it; empty where there is none to show.
        width (int): In pixels.
        height (int): In pixels.
        alt (str): What it shows, for those who do not see it.
    """

    src: str
    width: int
    height: int
    alt: str


def thumbnail(path: str, alt: str, side: int = SIDE) -> Picture:
    """A photograph made small, upright.

    Args:
        path (str): The file. Where it is gone or no longer an image, the
            picture is empty.
        alt (str): What it shows.
        side (int): Pixels of its longer side. Defaults to 160.
    """
    try:
        upright = _upright(path, 2 * side)
    except (OSError, UndecodedError):
        return Picture('', side, side, alt)
    upright.thumbnail((side, side))
    return embedded(upright, alt)


def _upright(path: str, least: int) -> Image.Image:
    """An image as it is seen, its longer side of some pixels at least.

    A JPEG is read at a fraction of its size, in a tenth of the time.
    """
    content = read_bytes(path)
    if not content.startswith(JPEG):
        return Image.fromarray(decode(content)[..., ::-1])
    image = open_image(BytesIO(content))
    image.draft('RGB', (least, least))
    return ImageOps.exif_transpose(image)


def embedded(image: Image.Image, alt: str) -> Picture:
    """An image inside the page, as JPEG.

    Args:
        image (PIL.Image.Image): The image.
        alt (str): What it shows.
    """
    file = BytesIO()
    image.convert('RGB').save(file, 'JPEG', quality=QUALITY, optimize=True)
    content = base64.b64encode(file.getvalue()).decode()
    return Picture(f'data:image/jpeg;base64,{content}', *image.size, alt)
