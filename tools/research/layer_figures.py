# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Charts and tables for layer studies and model comparisons."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from decisions import disagreement
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from mmclca.errors import Error
from mmclca.utils.files import write_rows
from mmclca.visualization.figures import save_figure

# labels of both axes by table title
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
    """Draw study tables side by side, titles as in ``AXES``.

    ``series`` names the columns: 'head' draws dots and a curve for their mean,
    since heads in different layers do not correspond; other names draw one
    colored curve per column.
    """
    figure = Figure((5 * len(tables), 3.6), layout='constrained')
    # the same scale for curves of one quantity
    axes = figure.subplots(1, len(tables), squeeze=False, sharey=not series)[0]
    for axis, (title, table) in zip(axes, tables.items(), strict=True):
        names = [f'{series} {number}' for number in range(table.shape[1])]
        if series == 'head':
            axis.plot(table.tolist(), 'o', color='tab:grey', markersize=3)
            table, names = table.mean(dim=1), ['mean of heads (dots)']
        colors = colormaps['viridis'](np.linspace(0, 0.9, len(names)))
        axis.set_prop_cycle(color=colors)
        lines = axis.plot(table.tolist(), '.-', label=names)
        x_label, y_label = AXES[title]
        axis.set(xlabel=x_label, ylabel=y_label)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        if series == 'head' or len(names) > 1:
            handles = lines[
                :: 1 + len(lines) // 13
            ]  # more would hide the curves
            axis.legend(handles=handles, fontsize=7, frameon=False, ncols=2)
    save_figure(figure, out)


def write_numbers(tables: dict[str, Tensor], out: Path) -> None:
    """Write tables as one ``.csv`` file: title, row, then its numbers."""
    rows = []
    for title, table in tables.items():
        rows += [(title, x, *row) for x, row in enumerate(table.tolist())]
    write_rows(out, rows)


def draw_cka(
    similarity: Tensor,
    out: str,
    names: tuple[str, str] = ('', ''),
    reduce_at: tuple[Sequence[int], Sequence[int]] = ((), ()),
    label: str = 'CKA',
) -> None:
    """Draw layer similarities (L, M) as a matrix.

    ``names`` are the two models, ``reduce_at`` the layers to mark in each;
    ``label`` is the color bar title.
    """
    rows, columns = similarity.shape
    size = 2 + 0.35 * columns, 1.2 + 0.35 * rows
    figure = Figure(size, layout='constrained')
    axis = figure.subplots()
    draw_matrix(axis, similarity, label, origin='lower')
    _number_layers(axis.yaxis, rows, names[0], reduce_at[0])
    _number_layers(axis.xaxis, columns, names[1], reduce_at[1])
    axis.tick_params(axis='x', labelrotation=90)
    save_figure(figure, out)


def draw_matrix(axis: Axes, matrix: Tensor, label: str, **options) -> None:
    """Draw a matrix with values from 0 to 1, and the numbers."""
    values = matrix.cpu().numpy()
    drawn = axis.imshow(values, 'cividis', vmin=0, vmax=1, **options)
    for (row, column), value in np.ndenumerate(values):
        style = dict(ha='center', va='center', size=6)
        style['color'] = 'black' if value > 0.6 else 'white'
        axis.text(column, row, f'{value:.2f}', **style)
    bar = axis.figure.colorbar(drawn, ax=axis, shrink=0.8)
    bar.set_label(label, size=9)


def _number_layers(side, number: int, name: str, marked) -> None:
    labels = [f'{n} ▾' if n in marked else str(n) for n in range(number)]
    side.set_ticks(range(number), labels, fontsize=8)
    note = ' (▾ reduces)' if len(marked) else ''
    side.set_label_text(f'layer{name and f" of {name}"}{note}', size=9)


def check_classes(names: Sequence[list[str]]) -> None:
    """Refuse models with different classes, since labels are compared.

    Models without class names are not checked.
    """
    named = [
        names_of_model
        for names_of_model in names
        if names_of_model != [*map(str, range(len(names_of_model)))]
    ]
    if any(of_one != named[0] for of_one in named):
        raise Error('the models have different class names or orders')


def draw_agreement(
    rows: dict[str, Tensor], cosines: dict[str, Tensor], out: str
) -> None:
    """Draw pairwise disagreement, and cosines per layer between two tokens.

    ``rows`` are :func:`.decisions` of all models; ``cosines`` are
    :func:`.token_cosines` by model, possibly empty.
    """
    names, parts = list(rows), 1 + bool(cosines)
    size = parts * (3 + 0.55 * len(names)), 2.2 + 0.55 * len(names)
    figure = Figure(size, layout='constrained')
    first, *further_axes = figure.subplots(1, parts, squeeze=False)[0]
    label = 'share of images with different predictions'
    draw_matrix(first, disagreement(rows.values()), label)
    ticks = range(len(names))
    first.set_yticks(ticks, names, fontsize=8)
    first.set_xticks(ticks, names, fontsize=8, rotation=90)
    for axis in further_axes:
        for name, values in cosines.items():
            axis.plot(values.tolist(), marker='o', markersize=3, label=name)
        axis.set_xlabel('layers passed', fontsize=9)
        axis.set_ylabel('cosine similarity, CLS to distillation token')
        axis.legend(fontsize=8, frameon=False)
    save_figure(figure, out)
