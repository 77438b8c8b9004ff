# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Figures of tools: how they look, and where they go."""

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.backends import BackendFilter, backend_registry


def new_axes(style, window_size, title):
    """An empty figure of one plot.

    Args:
        style (str): Of seaborn's, such as 'whitegrid'.
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
