# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Iterable, Iterator

import matplotlib
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, ScalarFormatter

from mmclca.benchmark.few_photographs.arms import (
    LAST_LOGISTIC,
    LOGISTIC,
    NCM,
    NEIGHBOUR,
    OUR_KEEP_RATE,
    OUR_METHOD,
    OUR_PROBE,
    SHALLOWER,
    SMALLER,
)

from ..figures.style import COLOURS, PAGE, STYLE
from .runs import (
    CLA,
    CLCA,
    FINE_TUNING,
    IMG_SIZE,
    LINES,
    OURS_SMALLER,
    OURS_TRAINED,
)

# colour and marker of each line; Okabe and Ito's colours
LOOKS = {
    OURS_TRAINED: ('#882255', 'o'),  # of Tol's colours
    OURS_SMALLER: ('#882255', 's'),
    CLCA: (COLOURS['clca'], 'o'),
    CLA: (COLOURS['cla'], 'o'),
    FINE_TUNING: (COLOURS['base'], 'o'),
    OUR_PROBE: (COLOURS['clc'], 'D'),
    SMALLER: ('#E69F00', 's'),
    SHALLOWER: ('#B8A800', 'v'),
    LOGISTIC: ('#56B4E9', '^'),
    LAST_LOGISTIC: ('0.6', '^'),
    NEIGHBOUR: ('0.6', 'X'),
    NCM: ('0.6', 'P'),
}
OTHER = ('0.3', '*')
OURS = f'ours: {OUR_PROBE}, {OUR_METHOD} {OUR_KEEP_RATE:g}'
HEIGHT = 4.4


@matplotlib.rc_context(STYLE)
def draw_arms(panels: dict[str, pd.DataFrame]) -> Figure:
    """Draw accuracy against multiply-accumulates: ours, and lines of arms
    that differ in how much they pay.

    Args:
        panels (dict[str, pandas.DataFrame]): Arms of
            :func:`mmclca.sweep.few_photographs.to_arms` by title.

    Returns:
        Figure: A panel each, side by side, with one legend below.
    """
    figure = Figure((PAGE, HEIGHT), layout='constrained')
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axis, (title, arms) in zip(axes, panels.items(), strict=True):
        _draw_ours(axis, arms[arms.ours])
        for (line, way), own in _lines(arms):
            _draw(axis, line, way, own)
        _style(axis, title)
    axes[0].set_ylim(_ends(panels.values()))
    axes[0].set_ylabel('top-1 accuracy (%), mean over draws')
    figure.legend(
        handles=_entries(axes),
        loc='outside lower center',
        ncols=3,
        fontsize=6.5,
        columnspacing=1,
    )
    return figure


def _entries(axes: Iterable[Axes]) -> list:
    """What the legend shows, each label once, in the order of the lines."""
    lines = {line.get_label(): line for axis in axes for line in axis.lines}
    return sorted(lines.values(), key=Artist.get_zorder, reverse=True)


def _ends(panels: Iterable[pd.DataFrame]) -> tuple[float, float]:
    """Ends of the axis: reduced networks read at their last layer leave the
    picture, so that the others can be told apart."""
    shown = pd.concat(panels)
    shown = shown[(shown.line != LAST_LOGISTIC) | (shown.method == '')]
    return shown.accuracy.min() - 1, shown.accuracy.max() + 1


def _lines(
    arms: pd.DataFrame,
) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    """Arms by line and way; ours with smaller images is a line of its own."""
    shown = arms[~arms.ours | (arms.pixels == IMG_SIZE)].sort_values('gmacs')
    ways = [_way(arm) for arm in shown.itertuples()]
    yield from shown.assign(way=ways).groupby(['line', 'way'], sort=False)


def _way(arm) -> str:
    """How a line pays less: what has all its tokens is where that of EViT
    ends, but for fewer layers."""
    if not arm.method:
        return '' if arm.line == SHALLOWER else 'EViT'
    if arm.line == SHALLOWER:
        return f'{arm.method} {arm.keep_rate:g}'
    if arm.pixels == IMG_SIZE:
        return arm.method
    return f'{arm.method} {arm.keep_rate:g}, smaller'


def _draw_ours(axis: Axes, ours: pd.DataFrame) -> None:
    ours = ours.sort_values('gmacs')
    look = dict(color='black', marker='o', linewidth=2, label=OURS, zorder=4)
    axis.plot(ours.gmacs, ours.accuracy, **look)


def _draw(axis: Axes, line: str, way: str, arms: pd.DataFrame) -> None:
    colour, marker = LOOKS.get(line, OTHER)
    place = LINES.index(line) if line in LINES else len(LINES)
    reduced = arms.method.any()
    second = reduced and way != 'EViT'
    axis.plot(
        arms.gmacs,
        arms.accuracy,
        color=colour,
        marker=marker,
        linestyle=':' if second else '-',
        markerfacecolor='white' if second else colour,
        label=f'{line}, {way}' if reduced else line,
        zorder=4 - (place + 1) / 100,
    )


def _style(axis: Axes, title: str) -> None:
    axis.set(title=title, xlabel='GMACs', xscale='log')
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(ScalarFormatter())
