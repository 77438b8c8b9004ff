# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps

from mmclca.datasets.decoding import read_bgr

BACKGROUND = (255, 255, 255)
INK = (40, 40, 40)
FRAMES = {True: (0, 114, 178), False: (230, 159, 0)}  # Okabe and Ito's


def contact_sheet(
    groups, out, thumb=128, columns=8, gap=8, frames=None, captions=None
):
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
        frames (dict[str, list[bool | None]], optional): For each image
            whether it is right, drawn as a blue frame, or wrong, as an orange
            one; None for no frame. Defaults to None: no frame anywhere.
        captions (dict[str, list[str]], optional): A line to write below each
            image. Defaults to None: no lines.

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
    row_step = step + heading * (captions is not None)
    band_height = heading + rows * row_step + gap
    width = min(columns, len(names)) * step + gap
    sheet = Image.new('RGB', (width, bands * band_height), BACKGROUND)
    pen = ImageDraw.Draw(sheet)
    for i, name in enumerate(names):
        left = gap + i % columns * step
        top = i // columns * band_height + gap
        _write(pen, name, left + thumb / 2, top, thumb)
        for row, path in enumerate(groups[name]):
            image = _thumbnail(path, thumb)
            corner = left, top + heading + row * row_step
            sheet.paste(image, corner)
            if captions:
                below = corner[1] + step
                text = captions[name][row]
                _write(pen, text, left + thumb / 2, below, thumb)
            if frames and frames[name][row] is not None:
                _frame(pen, corner, thumb, gap, FRAMES[frames[name][row]])
    sheet.save(out)


def _frame(pen, corner, thumb, gap, colour):
    """Draw a frame around an image, in half of the gap."""
    width = max(gap // 2, 1)
    left, top = (place - width for place in corner)
    right, bottom = (place + thumb + width - 1 for place in corner)
    pen.rectangle((left, top, right, bottom), outline=colour, width=width)


def _thumbnail(path, thumb):
    image = Image.fromarray(np.ascontiguousarray(read_bgr(path)[..., ::-1]))
    image = ImageOps.contain(image, (thumb, thumb), Image.Resampling.LANCZOS)
    return ImageOps.pad(image, (thumb, thumb), color=BACKGROUND)


def _write(pen, text, centre, top, width):
    """Write a line of text as wide as an image: smaller where it is longer,
    and cut where that does not do."""
    for size in range(max(width // 9, 9), max(width // 13, 9) - 1, -1):
        font = ImageFont.load_default(size=size)
        if font.getlength(text) <= width:
            break
    short = text
    while font.getlength(short) > width and len(short) > 2:
        short = short[:-2] + '…'
    pen.text((centre, top), short, INK, font, anchor='ma')
