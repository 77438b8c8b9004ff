# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compressed picture files."""

from pathlib import Path

FOLDER = Path('docs/pictures')
# a diagram, and a picture of a model that is not in the repository, whose page
# shows the command
STORED = ('data_flow', 'pretraining/mae')
COLORS = 256  # palette size: looks equal at a third of the file size


def save(picture, name):
    """Write a figure or an image file as a PNG with a palette; return the size
    in bytes."""
    from PIL import Image

    file = get_path(name)
    file.parent.mkdir(exist_ok=True)
    of_plot = not isinstance(picture, Path)
    method = Image.Quantize['MAXCOVERAGE' if of_plot else 'MEDIANCUT']
    with Image.open(in_file(picture)) as image:
        small = image.convert('RGB').quantize(
            COLORS, method, dither=Image.Dither.NONE
        )
    small.save(file, optimize=True)
    return file.stat().st_size


def get_path(name):
    """Return the path to a picture; benchmarks/NAME is in docs/benchmarks."""
    folder = Path('docs') if name.startswith('benchmarks/') else FOLDER
    return folder / f'{name}.png'


def in_file(picture):
    """Return a file with a picture, in memory if it is a figure."""
    import io

    import matplotlib.pyplot as plt

    if isinstance(picture, Path):
        return picture
    file = io.BytesIO()
    picture.savefig(file)
    plt.close(picture)
    file.seek(0)
    return file
