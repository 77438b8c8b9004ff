# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Figures of tools: how they look, and where they go."""

import argparse
import re
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.backends import BackendFilter, backend_registry

STYLES = ('darkgrid', 'whitegrid', 'dark', 'white', 'ticks')


def add_figure_arguments(parser):
    """Add the arguments of every tool that draws curves.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
    """
    parser.add_argument('--title', help='title of the figure')
    parser.add_argument(
        '--style',
        choices=STYLES,
        default='whitegrid',
        help="one of seaborn's styles (default: %(default)s)",
    )
    parser.add_argument(
        '--window-size',
        type=size,
        default='12*7',
        metavar='W*H',
        help='of the figure, in inches (default: %(default)s)',
    )


def size(text):
    """Width and height of ``W*H``, in inches."""
    if not re.fullmatch(r'[1-9]\d*\*[1-9]\d*', text):
        raise argparse.ArgumentTypeError(
            f'{text!r}: width*height in whole inches, such as "12*7"'
        )
    return tuple(map(int, text.split('*')))


def new_axes(style, window_size, title):
    """An empty figure of one plot.

    Args:
        style (str): Of :data:`STYLES`.
        window_size (tuple[int, int]): Width and height in inches.
        title (str): What stands above the plot.
    """
    with plt.style.context(f'seaborn-v0_8-{style}'):
        figure, axes = plt.subplots(figsize=window_size, layout='constrained')
    axes.set_title(title)
    return figure, axes


def check_picture(path):
    """Refuse a picture that cannot be written, before it is drawn.

    Args:
        path (str | Path): The picture.

    Raises:
        FileNotFoundError: If its folder is not there.
        ValueError: If matplotlib cannot write such files.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f'there is no folder {path.parent}: make it')
    known = plt.figure().canvas.get_supported_filetypes()
    plt.close()
    if path.suffix[1:].lower() not in known:
        raise ValueError(
            f'{path}: no picture; its name must end in one of '
            f'{", ".join(f".{ending}" for ending in sorted(known))}'
        )


def can_show():
    """Whether figures can be shown in windows."""
    windows = backend_registry.list_builtin(BackendFilter.INTERACTIVE)
    return plt.get_backend().lower() in map(str.lower, windows)
