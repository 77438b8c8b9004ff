# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import mmcv
import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps

BACKGROUND = (255, 255, 255)
INK = (40, 40, 40)


def contact_sheet(groups, out, thumb=128, columns=8, gap=8):
    """Draw images of several classes side by side.

    Each class is a column with its name on top; after ``columns`` classes a
    new band begins below.

    Args:
        groups (dict[str, list[str | Path]]): Images by the name of the class.
        out (str | Path): Picture to write; its ending gives the format.
        thumb (int): Height and width that an image is fitted into, in
            pixels. Defaults to 128.
        columns (int): Classes beside each other. Defaults to 8.
        gap (int): Pixels between images. Defaults to 8.

    Raises:
        ValueError: If there is no class, or no image in any of them.
    """
    rows = max(map(len, groups.values()), default=0)
    if rows == 0:
        raise ValueError('no image to draw; groups maps names to image paths')
    names = list(groups)
    bands = -(-len(names) // columns)
    heading = thumb // 6 + gap
    step = thumb + gap
    band_height = heading + rows * step + gap
    width = min(columns, len(names)) * step + gap
    sheet = Image.new('RGB', (width, bands * band_height), BACKGROUND)
    pen = ImageDraw.Draw(sheet)
    for i, name in enumerate(names):
        left = gap + i % columns * step
        top = i // columns * band_height + gap
        _write(pen, name, left + thumb / 2, top, thumb)
        for row, path in enumerate(groups[name]):
            image = _thumbnail(path, thumb)
            sheet.paste(image, (left, top + heading + row * step))
    sheet.save(out)


def _thumbnail(path, thumb):
    image = Image.fromarray(np.ascontiguousarray(mmcv.imread(path)[..., ::-1]))
    image = ImageOps.contain(image, (thumb, thumb), Image.Resampling.LANCZOS)
    return ImageOps.pad(image, (thumb, thumb), color=BACKGROUND)


def _write(pen, text, centre, top, width):
    """Write a line of text, cut where it is longer than the image below."""
    font = ImageFont.load_default(size=max(width // 9, 9))
    short = text
    while font.getlength(short) > width and len(short) > 2:
        short = short[:-2] + '…'
    pen.text((centre, top), short, INK, font, anchor='ma')
