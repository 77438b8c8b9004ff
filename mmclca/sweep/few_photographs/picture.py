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
    OUR_PROBE,
    SHALLOWER,
    SMALLER,
)

from ..figures.style import COLOURS, PAGE, STYLE
from .runs import CLA, CLCA, FINE_TUNING, LINES, OURS_SMALLER, OURS_TRAINED

# colour and marker of each line; Okabe and Ito's colours
LOOKS = {
    OURS_TRAINED: ('black', 'o'),
    OURS_SMALLER: ('black', 's'),
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
# ways to pay less that may come on top of a reduction
COMBINED = (SMALLER, SHALLOWER)
HEIGHT = 4.4


@matplotlib.rc_context(STYLE)
def draw_arms(panels: dict[str, pd.DataFrame]) -> Figure:
    """Draw accuracy against multiply-accumulates, a line an arm.

    Args:
        panels (dict[str, pandas.DataFrame]): Arms of
            :func:`mmclca.sweep.few_photographs.to_arms` by title.

    Returns:
        Figure: A panel each, side by side, with one legend below.
    """
    figure = Figure((PAGE, HEIGHT), layout='constrained')
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axis, (title, arms) in zip(axes, panels.items(), strict=True):
        for (line, way), own in _lines(arms):
            _draw(axis, line, way, own)
        _style(axis, title)
    axes[0].set_ylim(_ends(panels.values()))
    axes[0].set_ylabel('top-1 accuracy (%), mean over draws')
    figure.legend(
        handles=_entries(axes), loc='outside lower center', ncols=3, fontsize=7
    )
    return figure


def _entries(axes: Iterable[Axes]) -> list:
    """What the legend shows, each label once, in the order of the lines."""
    lines = {line.get_label(): line for axis in axes for line in axis.lines}
    return sorted(lines.values(), key=Artist.get_zorder)


def _ends(panels: Iterable[pd.DataFrame]) -> tuple[float, float]:
    """Ends of the axis: reduced networks read at their last layer leave the
    picture, so that the others can be told apart."""
    shown = pd.concat(panels)
    shown = shown[(shown.line != LAST_LOGISTIC) | (shown.method == '')]
    return shown.accuracy.min() - 1, shown.accuracy.max() + 1


def _lines(
    arms: pd.DataFrame,
) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    """Arms by line and reducer: what has all its tokens is where the line of
    EViT ends, but for smaller images and fewer layers."""
    way = arms.method.where(
        arms.line.isin(COMBINED), arms.method.replace('', 'EViT')
    )
    ordered = arms.assign(way=way).sort_values('gmacs')
    yield from ordered.groupby(['line', 'way'], sort=False)


def _draw(axis: Axes, line: str, way: str, arms: pd.DataFrame) -> None:
    colour, marker = LOOKS.get(line, OTHER)
    place = LINES.index(line) if line in LINES else len(LINES)
    merged = way == 'ToMe' or (line in COMBINED and way)
    axis.plot(
        arms.gmacs,
        arms.accuracy,
        color=colour,
        marker=marker,
        linestyle=':' if merged else '-',
        markerfacecolor='white' if merged else colour,
        label=_label(line, way, arms),
        zorder=3 + place / 100,
    )


def _label(line: str, way: str, arms: pd.DataFrame) -> str:
    if line in COMBINED:
        return f'{line}, EViT {arms.keep_rate.iloc[0]:g}' if way else line
    return f'{line}, {way}' if arms.method.any() else line


def _style(axis: Axes, title: str) -> None:
    axis.set(title=title, xlabel='GMACs', xscale='log')
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(ScalarFormatter())
