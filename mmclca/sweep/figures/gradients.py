# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import warnings

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..labels import CLCA, percent, seeds_label, setting_label
from ..missing import MissingResultsError
from ..report import to_table
from .style import COLOURS, STYLE, legend_below, line_style, panel_grid

FIGURE = ['dataset', 'backbone', 'method', 'size', 'variant']
HEIGHT = 2.5
COLUMNS = 4
MOST = 8  # figures


@matplotlib.rc_context(STYLE)
def draw_gradients(results: list[dict]) -> list[Figure]:
    """Draw the largest gradients of each epoch, as in Fig. 4 of the paper.

    A figure a data set, backbone, method, size and variant, of those that
    have the most of base, +CLA, +CLC and CLCA. A panel a keep rate; lines are
    means over seeds, bands their range, the numbers above top-1 accuracies.

    Args:
        results (list[dict]): Of :func:`mmclca.sweep.results.read_results`.

    Returns:
        list[Figure]: At most eight, with a warning where there are more.

    Raises:
        MissingResultsError: If no two kinds of model of a setting have
            gradients of two epochs or more.
    """
    curves = gradient_curves(results)
    groups = curves.groupby(FIGURE) if len(curves) else ()
    kinds = {names: own.clca.nunique() for names, own in groups}
    most = max(kinds.values(), default=0)
    if most < 2:
        raise MissingResultsError(
            'gradients of two epochs or more (GradientStatsHook) with two or '
            'more of clca=' + ', '.join(map(repr, CLCA))
        )
    drawn = [(names, own) for names, own in groups if kinds[names] == most]
    if len(drawn) > MOST:
        warnings.warn(
            f'gradients: {MOST} figures of {len(drawn)} are drawn, one for '
            f'each {", ".join(FIGURE)}: take fewer of these',
            stacklevel=2,
        )
    return [_figure(names, own) for names, own in drawn[:MOST]]


def gradient_curves(results: list[dict]) -> pd.DataFrame:
    """The largest gradient magnitude of each epoch of each run.

    Args:
        results (list[dict]): Of :func:`mmclca.sweep.results.read_results`.

    Returns:
        pandas.DataFrame: A row an epoch of a run: what makes a cell,
        ``accuracy`` of the run, ``epoch`` from 1, ``gradient``. Runs of less
        than two epochs are left out, as are numbers that are not finite.
    """
    to_table(results)  # refuses what cannot be compared
    rows = [
        dict(result['cell'], accuracy=result['accuracy'], epoch=i, gradient=g)
        for result in results
        if len(per_epoch := _per_epoch(result)) > 1
        for i, g in enumerate(per_epoch, start=1)
        if np.isfinite(g)
    ]
    return pd.DataFrame(rows)


def _per_epoch(result: dict) -> np.ndarray:
    gradients = result.get('gradients') or {}
    return np.asarray(gradients.get('per_epoch') or [], dtype=float)


def _figure(names: tuple, curves: pd.DataFrame) -> Figure:
    rates = sorted(curves.keep_rate.unique(), reverse=True)
    rows = -(-len(rates) // COLUMNS)
    columns = -(-len(rates) // rows)
    figure, axes = panel_grid(
        len(rates), columns, HEIGHT, 0, 'largest gradient', sharey=True
    )
    for axis, rate in zip(axes, rates, strict=True):
        _panel(axis, curves[curves.keep_rate == rate])
        axis.set_title(f'keep rate {percent(rate)} %', pad=15)
        axis.set_xlabel('epoch')
    dataset, backbone, method, size, variant = names
    title = setting_label(dataset, backbone, f'{size} px', method, variant)
    figure.suptitle(title, fontsize=8)
    _legend(figure, curves)
    return figure


def _panel(axis: Axes, curves: pd.DataFrame) -> None:
    for place, kind in enumerate(CLCA):
        own = curves[curves.clca == kind]
        if own.empty:
            continue
        colour, gradients = COLOURS[kind], own.groupby('epoch').gradient
        mean, low, high = gradients.mean(), gradients.min(), gradients.max()
        axis.plot(mean.index, mean, **line_style(kind))
        band = dict(color=colour, alpha=0.15, linewidth=0)
        axis.fill_between(mean.index, low, high, **band)
        x = (place + 0.5) / len(CLCA)
        accuracy = own.groupby('seed').accuracy.first().mean()
        above = dict(color=colour, ha='center', transform=axis.transAxes)
        axis.text(x, 1.02, f'{accuracy:.1f}', **above)
    axis.set_yscale('log')
    axis.xaxis.get_major_locator().set_params(integer=True)


def _legend(figure: Figure, curves: pd.DataFrame) -> None:
    kinds = [kind for kind in CLCA if kind in set(curves.clca)]
    runs = curves.groupby(['keep_rate', 'clca']).seed.nunique()
    handles = [Line2D([], [], **line_style(kind)) for kind in kinds]
    title = f'mean and range of {seeds_label(runs)}'
    numbers = 'numbers: top-1 accuracy in per cent'
    legend_below(figure, handles, title, numbers)
