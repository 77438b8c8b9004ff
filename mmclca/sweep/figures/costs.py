# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator, ScalarFormatter

from mmclca.visualization.point_labels import label_points

from ..labels import percent, seeds_label, setting_label
from ..missing import MissingResultsError
from ..report import summarize, to_table
from .style import FACES, STYLE, legend_below, line_style, panel_grid

MARKERS = 'os^DvPX*<>'
MARKER_SIZES = (3.5, 5.5, 7.5)
PANEL_HEIGHT, COLUMNS, ROWS = 2.3, 3, 3


@matplotlib.rc_context(STYLE)
def draw_costs(results: list[dict]) -> list[Figure]:
    """Draw accuracy against multiply-accumulates, as in Fig. 1 of the paper.

    A panel a data set, backbone and variant; a line a method and size, over
    its keep rates, without CLCA (dashed, open) and with it (filled). Bars
    are standard deviations over seeds.

    Args:
        results (list[dict]): Of :func:`mmclca.sweep.results.read_results`.

    Returns:
        list[Figure]: Pages of up to nine panels.

    Raises:
        MissingResultsError: If no panel has runs of two costs, without CLCA
            or with all of it.
    """
    table = to_table(results)
    points = summarize(table[table.clca.isin(['base', 'clca'])])
    panels = list(points.groupby(['dataset', 'backbone', 'variant']))
    if not any(own.gmacs.nunique() > 1 for _, own in panels):
        raise MissingResultsError(
            "runs of two costs or more with clca='base' or 'clca' of a data "
            'set and backbone: other keep rates, sizes or methods'
        )
    pages = range(0, len(panels), COLUMNS * ROWS)
    return [_page(panels[i : i + COLUMNS * ROWS], points) for i in pages]


def _page(panels: list, points: pd.DataFrame) -> Figure:
    columns = min(COLUMNS, len(panels))
    figure, axes = panel_grid(
        len(panels), columns, PANEL_HEIGHT, 0.6, 'top-1 accuracy (%)'
    )
    looks = _looks(points)
    for axis, (names, own) in zip(axes, panels, strict=True):
        _panel(axis, names, own, *looks)
    _legend(figure, points, *looks)
    figure.draw_without_rendering()  # the labels need to know the places
    for axis, (_, own) in zip(axes, panels, strict=True):
        _label_keep_rates(axis, own)
    return figure


def _looks(points: pd.DataFrame) -> tuple[dict, dict]:
    """The marker of each method, its size for each size of image."""
    methods = dict(zip(sorted(points.method.unique()), MARKERS, strict=False))
    pixels = sorted(points['size'].unique())
    widths = (MARKER_SIZES * len(pixels))[: len(pixels)]
    return methods, dict(zip(pixels, sorted(widths), strict=True))


def _panel(
    axis: Axes, names: tuple, points: pd.DataFrame, markers, widths
) -> None:
    lines = points.groupby(['method', 'size', 'clca'])
    for (method, size, kind), line in lines:
        look = line_style(kind) | dict(label=f'{method} {size} {kind}')
        look |= dict(marker=markers[method], markersize=widths[size])
        look |= dict(markerfacecolor=FACES[kind], elinewidth=0.8, capsize=1.5)
        axis.errorbar(line.gmacs, line.accuracy, line.accuracy_std, **look)
    axis.set(title=setting_label(*names), xlabel='GMACs', xscale='log')
    axis.margins(x=0.08, y=0.14)
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(ScalarFormatter())


def _legend(figure: Figure, points, markers, widths) -> None:
    handles = [
        Line2D([], [], marker='o', markerfacecolor=face, **line_style(kind))
        for kind, face in FACES.items()
        if kind in set(points.clca)
    ]
    looks = [(marker, 4.5, name) for name, marker in markers.items()]
    if len(widths) > 1:
        looks += [('o', width, f'{px} px') for px, width in widths.items()]
    grey = dict(color='0.35', linestyle='')
    handles += [
        Line2D([], [], marker=marker, markersize=width, label=label, **grey)
        for marker, width, label in looks
    ]
    title = f'mean and standard deviation of {seeds_label(points.seeds)}'
    numbers = 'numbers: keep rate in per cent'
    close = dict(columnspacing=1.2, handletextpad=0.5)
    legend_below(figure, handles, title, numbers, **close)


def _label_keep_rates(axis: Axes, points: pd.DataFrame) -> None:
    """Over the highest point of each keep rate and size, where room is.

    Of the methods with most keep rates; others have no line to follow.
    """
    numbers = points.groupby('method').keep_rate.transform('nunique')
    points = points[numbers == numbers.max()]
    rates = points.keep_rate
    tops = points.accuracy + points.accuracy_std.fillna(0)
    highest = tops.groupby([points['size'], rates]).idxmax()
    labelled = [
        (points.gmacs[row], tops[row], percent(rates[row]))
        for row in sorted(highest, key=lambda row: -tops[row])
    ]
    style = dict(ha='center', va='bottom', fontsize=7, color='0.3')
    style |= dict(xytext=(0, 4), in_layout=False)
    label_points(axis, labelled, _width, 9, **style)


def _width(text: str, other: str) -> float:
    """Points that two labels need beside each other."""
    return 2.2 * len(text + other) + 1.5
