# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ..cell import NONE
from ..labels import CLCA, INERT, percent, setting_label
from ..missing import MissingResultsError
from ..report import to_table
from .style import COLOURS, COLUMN, FACES, PAGE, STYLE, legend_below

SETTING = ['backbone', 'size', 'keep_rate']
FEW = 5  # methods that fit a column of text
BOXED = 5  # runs from which quartiles are worth a box
MANY = 30  # runs from which dots are small
PANEL_HEIGHT, ROWS = 2.2, 4
GOLDEN = (5**0.5 - 1) / 2


@matplotlib.rc_context(STYLE)
def draw_methods(results: list[dict]) -> list[Figure]:
    """Draw the accuracies of each method, as in Fig. 3 of the paper.

    A panel a data set and variant; a dot a run, without CLCA and with it, a
    line the median, a box the quartiles of five runs or more. Methods are
    compared at the backbones, sizes and keep rates that all of them have;
    'none' are runs of keep rate 1 of methods that then reduce nothing.

    Args:
        results (list[dict]): Of :func:`mmclca.sweep.results.read_results`.

    Returns:
        list[Figure]: Pages of up to four panels.

    Raises:
        MissingResultsError: If runs without CLCA or with all of it are
            missing, or the methods have no setting in common.
    """
    table = to_table(results)
    table = table[table.clca.isin(['base', 'clca'])]
    if table.clca.nunique() < 2:
        raise MissingResultsError("runs with clca='base' and with 'clca'")
    unreduced = (table.keep_rate == 1) & table.method.isin(INERT)
    table = table.assign(method=table.method.mask(unreduced, NONE))
    panels = [
        (names, compared)
        for names, own in table.groupby(['dataset', 'variant'])
        if len(compared := comparable(own))
    ]
    if not panels:
        raise MissingResultsError(
            'runs of all methods, with and without CLCA, at one backbone, '
            'size and keep rate below 1'
        )
    pages = range(0, len(panels), ROWS)
    return [_page(panels[i : i + ROWS]) for i in pages]


def comparable(table: pd.DataFrame) -> pd.DataFrame:
    """Runs of the settings that all methods have, CLCA or not.

    Args:
        table (pandas.DataFrame): Runs of a data set.

    Returns:
        pandas.DataFrame: These runs, and those without a reduction at their
        backbones and sizes.
    """
    reduced = table[table.method != NONE]
    kinds = reduced.method + reduced.clca
    found = kinds.groupby([reduced[name] for name in SETTING]).nunique()
    common = found.index[found == kinds.nunique()]
    models = common.droplevel('keep_rate')
    here = pd.MultiIndex.from_frame(table[SETTING])
    unreduced = here.droplevel('keep_rate').isin(models)
    return table[
        here.isin(common) | (unreduced & (table.method == NONE).to_numpy())
    ]


def _page(panels: list) -> Figure:
    most = max(own.method.nunique() for _, own in panels)
    size = COLUMN if most <= FEW else PAGE, PANEL_HEIGHT * len(panels) + 0.4
    figure = Figure(size, layout='constrained')
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axis, (names, own) in zip(axes, panels, strict=True):
        _panel(axis, names, own)
    handles = [
        Patch(facecolor=face, edgecolor=COLOURS[kind], label=CLCA[kind])
        for kind, face in FACES.items()
    ]
    legend_below(figure, handles, 'a dot is a run, a line the median')
    return figure


def _panel(axis: Axes, names: tuple, table: pd.DataFrame) -> None:
    methods = sorted(table.method.unique(), key=lambda m: (m != NONE, m))
    for (method, kind), own in table.groupby(['method', 'clca']):
        side = -0.2 if kind == 'base' else 0.2
        _strip(axis, methods.index(method) + side, own.accuracy, kind)
    axis.grid(axis='x', visible=False)
    axis.set_xticks(range(len(methods)), methods)
    rates = sorted(table.keep_rate[table.method != NONE].unique())
    shares = ', '.join(map(percent, rates))
    axis.set(
        title=f'{setting_label(*names)}: keep rate {shares} %',
        xlim=(-0.6, len(methods) - 0.4),
        ylabel='top-1 accuracy (%)',
    )


def _strip(axis: Axes, x: float, accuracies: pd.Series, kind: str) -> None:
    colour = COLOURS[kind]
    size, edge = (1.8, 0.4) if len(accuracies) >= MANY else (3, 0.7)
    dots = dict(marker='o', markersize=size, markeredgewidth=edge)
    dots |= dict(linestyle='', color=colour, markerfacecolor=FACES[kind])
    # evenly spread, whatever their number, and the same each time
    offsets = (np.arange(len(accuracies)) * GOLDEN + 0.5) % 1 - 0.5
    axis.plot(x + 0.22 * offsets, accuracies, **dots)
    median = np.median(accuracies)
    axis.hlines(median, x - 0.17, x + 0.17, color=colour, zorder=3)
    if len(accuracies) < BOXED:
        return
    lines = dict(color=colour, linewidth=0.8)
    looks = dict.fromkeys(('boxprops', 'whiskerprops', 'capprops'), lines)
    looks |= dict(medianprops=dict(linewidth=0), widths=0.34)
    looks |= dict(showfliers=False, manage_ticks=False)
    axis.boxplot(accuracies, positions=[x], **looks)
