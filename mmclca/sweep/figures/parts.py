# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from ..labels import CLCA, percent, seeds_label, setting_label
from .style import PAGE, STYLE

FIGURE = ['dataset', 'backbone', 'size', 'method', 'variant', 'keep_rate']
USUAL = {'max', 'per_epoch', 'backbone', 'head'}  # what all results have
MAP = 'viridis'  # read alike by the colour-blind


@matplotlib.rc_context(STYLE)
def draw_parts(results: list[dict]) -> list[Figure]:
    """Draw where in the model the largest gradients are, epoch by epoch.

    Of the results of runs whose ``GradientStatsHook`` was given ``parts``; the
    groups of tokens of a ``GradientSourcesHook`` are rows as well. A figure a
    setting and variant, a panel for each of base, +CLA, +CLC and CLCA; a row
    a part, a colour the mean over seeds of its largest gradient.

    Args:
        results (list[dict]): Of :func:`mmclca.sweep.results.read_results`.

    Returns:
        list[Figure]: None where no run had parts of its own.
    """
    curves = part_curves(results)
    groups = curves.groupby(FIGURE) if len(curves) else ()
    return [_figure(names, own) for names, own in groups]


def part_curves(results: list[dict]) -> pd.DataFrame:
    """The largest gradient of each part in each epoch of each run.

    Args:
        results (list[dict]): Of :func:`mmclca.sweep.results.read_results`.

    Returns:
        pandas.DataFrame: A row an epoch of a part of a run: what makes a
        cell, ``part``, ``epoch`` from 1, ``gradient``; of the runs that had
        parts of their own. Numbers that are not finite, and zeros, of which
        a logarithm shows nothing, are left out.
    """
    rows = [
        dict(result['cell'], part=part, epoch=epoch, gradient=gradient)
        for result in results
        if (result.get('gradients') or {}).keys() - USUAL
        for part, per_epoch in result['gradients'].items()
        if part not in ('max', 'per_epoch')
        for epoch, gradient in enumerate(per_epoch, start=1)
        if gradient and np.isfinite(gradient)
    ]
    return pd.DataFrame(rows)


def _figure(names: tuple, curves: pd.DataFrame) -> Figure:
    kinds = [kind for kind in CLCA if kind in set(curves.clca)]
    parts = list(dict.fromkeys(curves.part))
    means = curves.groupby(['clca', 'part', 'epoch']).gradient.mean()
    norm = LogNorm(means.min(), means.max())
    height = 0.9 + 0.13 * max(len(parts), 8)
    figure = Figure((PAGE, height), layout='constrained')
    axes = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
    for axis, kind in zip(axes, kinds, strict=True):
        _panel(axis, means[kind].unstack().reindex(parts), norm)
        axis.set_title(CLCA[kind])
    axes[0].set_yticks(range(len(parts)), map(_label, parts))
    axes[0].invert_yaxis()
    colours = ScalarMappable(norm, MAP)
    bar = figure.colorbar(colours, ax=list(axes), label='largest gradient')
    bar.solids.set(rasterized=False, edgecolor='face')  # vectors, no gaps
    dataset, backbone, size, *more, rate = names
    title = setting_label(dataset, backbone, f'{size} px', *more)
    seeds = seeds_label(curves.groupby('clca').seed.nunique())
    title += f', keep rate {percent(rate)} %, mean of {seeds}'
    figure.suptitle(title, fontsize=8)
    return figure


def _panel(axis: Axes, table: pd.DataFrame, norm: LogNorm) -> None:
    """A row a part, a column an epoch; white where there was no gradient."""
    epochs = np.append(table.columns, table.columns[-1] + 1) - 0.5
    rows = np.arange(len(table) + 1) - 0.5
    # without edges, viewers show the gaps between cells
    edges = dict(edgecolors='face', linewidth=0.1)
    axis.pcolormesh(epochs, rows, table, norm=norm, cmap=MAP, **edges)
    axis.grid(False)
    axis.set_xlabel('epoch')
    axis.xaxis.get_major_locator().set_params(integer=True)


def _label(part: str) -> str:
    return part.removeprefix('backbone.').replace('layers.', 'layer ')
