# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections import defaultdict

import matplotlib
import matplotlib.figure
from matplotlib.ticker import MaxNLocator, NullLocator, ScalarFormatter

from mmclca.visualization.point_labels import label_points

from .candidates import PLAIN, Candidate
from .comparison import Result

MARKERS = 'osD^vP*X<>'
COLOURS = (*range(0, 20, 2), *range(1, 20, 2))
ROOM = (25.2, 15.84)  # of a label, in points
TICKS = (0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 8)


def draw_speed_up(results: list[Result], out: str) -> None:
    """Draw speed-up against the ratio of multiply-accumulates.

    A picture a baseline. On the dashed line the clock sees all that the
    multiply-accumulates promise. Points are labelled with their keep rate
    where there is room; filled ones have CLCA.

    Args:
        results (list[Result]): Those beside a baseline after each other.
        out (str): Picture to write.
    """
    groups = by_baseline(results)
    size = 7.5 * len(groups), 7
    figure = matplotlib.figure.Figure(size, layout='constrained')
    axes = figure.subplots(1, len(groups), squeeze=False)[0]
    for axis, group in zip(axes, groups, strict=True):
        _draw(axis, group)
    figure.savefig(out, dpi=130)


def by_baseline(results: list[Result]) -> list[list[Result]]:
    """Results beside each baseline, which is among them, in their order."""
    groups = defaultdict(list)
    for one in results:
        groups[(one.baseline or one).candidate].append(one)
    return list(groups.values())


def title_of(baseline: Candidate) -> str:
    """A baseline as the axes of a picture call it."""
    return baseline.name or "timm's plain ViT"


def _draw(axis, results: list[Result]) -> None:
    baseline = results[0].candidate
    numbers = [result.gmacs_ratio for result in results]
    numbers += [speed for result in results for speed in result.speed_up]
    ends = (min(numbers) * 0.95, max(numbers) * 1.1)
    axis.plot(ends, ends, color='0.5', linestyle='--', zorder=0)
    style = dict(color='0.4', ha='right', va='top')
    end, offset = (ends[1], ends[1]), (-22, -2)
    axis.annotate('ideal', end, offset, textcoords='offset points', **style)
    names = dict.fromkeys(map(name_of, results))
    # tab20: every other one is pale
    colours = [matplotlib.colormaps['tab20'](i) for i in COLOURS]
    for i, name in enumerate(names):
        own = [result for result in results if name_of(result) == name]
        _draw_method(axis, own, colours[i % 20], MARKERS[i % 10], name)
    axis.set_title(f'{baseline.size.name}, {baseline.size.pixels} px')
    axis.set_xlabel(f'GMACs of {title_of(baseline)} / GMACs')
    axis.set_ylabel(f'speed / speed of {title_of(baseline)}')
    axis.set(xscale='log', yscale='log', xlim=ends, ylim=ends)
    _style(axis)
    _label(axis, results)


def _draw_method(axis, results, colour, marker, name) -> None:
    for result in results:
        x, (low, y, high) = result.gmacs_ratio, result.speed_up
        fill = 'none' if result.candidate.clca == 'no' else 'full'
        label = name if result is results[0] else None
        style = dict(marker=marker, markersize=6, fillstyle=fill, linestyle='')
        axis.plot(x, y, color=colour, label=label, **style)
        axis.plot((x, x), (low, high), color=colour, linewidth=1)


def _label(axis, results: list[Result]) -> None:
    """Keep rates beside the points."""
    points = [
        (result.gmacs_ratio, result.speed_up[1], result.candidate.keep_rate)
        for result in results
    ]
    style = dict(xytext=(6, -6), fontsize=7, color='0.3', va='top')
    label_points(axis, points, lambda *_: ROOM[0], ROOM[1], **style)


def name_of(result: Result) -> str:
    """A model as the legend calls it, with any keep rate."""
    name, method = result.candidate.name, result.candidate.method
    return f'{name} {method}' if name and method != PLAIN else name or method


def _style(axis) -> None:
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter(ScalarFormatter())
        side.set_minor_locator(NullLocator())
    low, high = axis.get_xlim()
    shown = [tick for tick in TICKS if low <= tick <= high]
    if len(shown) < 3:
        shown = MaxNLocator(5).tick_values(low, high)
    axis.set(xticks=shown, yticks=shown, xlim=(low, high), ylim=(low, high))
    axis.grid(alpha=0.25)
    axis.spines[['top', 'right']].set_visible(False)
    style = dict(fontsize=7, title_fontsize=7, frameon=False)
    axis.legend(title='filled: with CLCA', loc='upper left', **style)
