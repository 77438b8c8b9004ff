# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Figures and numbers of studies of layers."""

from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from mmclca.utils.files import write_rows

from .figures import save

# of tables by title: what their rows are, and their values
AXES = dict(
    distance=('layer', 'distance in patches'),
    entropy=('layer', 'entropy in nats'),
    amplitude=('frequency', 'log amplitude relative to frequency 0'),
    highest=('layer', 'log amplitude at the highest frequency'),
    accuracy=('layer', 'accuracy'),
    first=('number of first layers reinitialized', 'accuracy'),
    last=('number of last layers reinitialized', 'accuracy'),
    energy=('principal components', 'share of the variance'),
)


def draw_curves(tables: dict[str, Tensor], out: str, series: str = '') -> None:
    """Draw the tables of a study side by side.

    Args:
        tables (dict[str, Tensor]): Of a study, whose titles are in ``AXES``.
        out (str): Picture to write; its ending gives the format.
        series (str): What the columns are: 'head' for dots about the curve
            of their mean, since heads of two layers are not the same ones;
            else curves, by colours in their order. Defaults to '', for one.
    """
    figure = Figure((5 * len(tables), 3.6), layout='constrained')
    # curves of one quantity alike, to be compared
    axes = figure.subplots(1, len(tables), squeeze=False, sharey=not series)[0]
    for axis, (title, table) in zip(axes, tables.items(), strict=True):
        names = [f'{series} {number}' for number in range(table.shape[1])]
        if series == 'head':
            axis.plot(table.tolist(), 'o', color='tab:grey', markersize=3)
            table, names = table.mean(dim=1), ['mean of heads (dots)']
        colours = colormaps['viridis'](np.linspace(0, 0.9, len(names)))
        axis.set_prop_cycle(color=colours)
        lines = axis.plot(table.tolist(), '.-', label=names)
        x_label, y_label = AXES[title]
        axis.set(xlabel=x_label, ylabel=y_label)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        if series == 'head' or len(names) > 1:
            some = lines[:: 1 + len(lines) // 13]  # more hide the curves
            axis.legend(handles=some, fontsize=7, frameon=False, ncols=2)
    save(figure, out)


def write_numbers(tables: dict[str, Tensor], out: Path) -> None:
    """Write tables as one ``.csv`` file: title, row, then its numbers."""
    rows = []
    for title, table in tables.items():
        rows += [(title, x, *row) for x, row in enumerate(table.tolist())]
    write_rows(out, rows)
