# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the figures share: sizes, fonts, colours, files."""

from functools import partial
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmclca.utils.atomic_write import replace_file

from ..labels import CLCA

COLUMN, PAGE = 3.4, 7.0  # widths in inches
STYLE = {
    'font.size': 8,
    'axes.titlesize': 8,
    'axes.linewidth': 0.6,
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.grid': True,
    'axes.axisbelow': True,
    'grid.alpha': 0.3,
    'grid.linewidth': 0.5,
    'xtick.major.width': 0.6,
    'ytick.major.width': 0.6,
    'legend.frameon': False,
    'lines.linewidth': 1.2,
    'lines.markersize': 4.5,
    'pdf.fonttype': 42,  # publishers refuse Type 3
    'savefig.dpi': 300,
}
# Okabe and Ito's, told apart by the colour-blind; lines differ in print
COLOURS = dict(base='#D55E00', cla='#CC79A7', clc='#009E73', clca='#0072B2')
LINES = dict(base='--', cla='-.', clc=':', clca='-')
FACES = dict(base='white', clca=COLOURS['clca'])  # of markers


def line_style(kind: str) -> dict:
    """How the line of a kind of model ('base', 'cla', 'clc', 'clca') looks,
    and what a legend calls it."""
    return dict(color=COLOURS[kind], linestyle=LINES[kind], label=CLCA[kind])


def panel_grid(
    number: int,
    columns: int,
    height: float,
    legend_height: float,
    ylabel: str,
    sharey: bool = False,
) -> tuple[Figure, list[Axes]]:
    """A figure of panels, row by row, as wide as a page or a column of it.

    Args:
        number (int): Panels.
        columns (int): Panels in a row.
        height (float): Of a row, in inches.
        legend_height (float): More of the figure, in inches.
        ylabel (str): At the first panel of each row.
        sharey (bool): Whether all have one y axis. Defaults to False.
    """
    rows = -(-number // columns)
    width = COLUMN if columns == 1 else PAGE
    figure = Figure((width, height * rows + legend_height))
    figure.set_layout_engine('constrained')
    axes = figure.subplots(rows, columns, squeeze=False, sharey=sharey)
    for axis in axes.flat[number:]:
        axis.remove()
    for axis in axes[:, 0]:
        axis.set_ylabel(ylabel)
    return figure, list(axes.flat[:number])


def legend_below(figure: Figure, handles: list, *titles: str, **more) -> None:
    """A legend under the panels.

    Args:
        figure (Figure): As wide as a page or a column.
        handles (list): What it shows.
        *titles (str): What stands above them, below each other where the
            figure is narrow.
        **more: Of matplotlib's ``legend``.
    """
    wide = figure.get_figwidth() > COLUMN
    figure.legend(
        handles=handles,
        loc='outside lower center',
        ncols=min(len(handles), 8 if wide else 4),
        title=(', ' if wide else ',\n').join(titles),
        **more,
    )


def save(figure: Figure, path: Path) -> list[Path]:
    """Write a figure as PDF and as PNG.

    Args:
        figure (Figure): What was drawn under :data:`STYLE`.
        path (Path): Without suffix.

    Returns:
        list[Path]: The two files.
    """
    # no date, so that equal results give equal files
    metadata = {'.pdf': dict(CreationDate=None), '.png': {}}
    files = [path.with_name(f'{path.name}{end}') for end in metadata]
    with matplotlib.rc_context(STYLE):
        for file, entries in zip(files, metadata.values(), strict=True):
            replace_file(file, partial(figure.savefig, metadata=entries))
    return files
