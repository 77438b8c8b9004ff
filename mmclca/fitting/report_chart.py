# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Learning curve in the report."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any
from warnings import catch_warnings, filterwarnings

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MultipleLocator, PercentFormatter

from mmclca.apis.probe import CurvePoint, forecast
from mmclca.languages import text

from .accuracy_parts import Estimate

BAR, SOFT, LINE, PAGE = '#0072b2', '#59636d', '#d8dee4', '#ffffff'
# colors of the style sheet, which a dark screen replaces
COLORS = {BAR: 'bar', SOFT: 'soft', LINE: 'line', PAGE: 'page'}
FACTOR = 2  # extrapolate the learning curve to twice the photos


@dataclass(frozen=True)
class CurveSection:
    """Learning curve for the template.

    Args:
        points (list[CurvePoint]): Measured points.
        unit (str): Label of the x axis.
        estimate (CurvePoint, optional): Extrapolated point, None with fewer
            than two points.
        chart (str): Chart as SVG, empty without an estimate.
    """

    points: list[CurvePoint]
    unit: str
    estimate: CurvePoint | None
    chart: str


def choose_curve_unit(counts: Sequence[int], is_grouped: bool) -> str:
    """Return the x label of a learning curve, such as 'photos per class'."""
    if is_grouped:
        return text('report.groups_per_class')
    is_even = len({*counts}) == 1
    return text('report.per_class' if is_even else 'report.median_per_class')


def build_curve_section(
    points: Sequence[CurvePoint], unit: str, probe: Estimate
) -> CurveSection:
    """Extrapolate and draw a learning curve.

    The last point is the accuracy of the probe and has its interval.
    """
    estimate = forecast(points, FACTOR)
    points = [*points]
    if points and points[-1].accuracy == probe.accuracy:
        low, high = probe.low, probe.high
        if low is not None and high is not None:
            points[-1] = replace(points[-1], low=low, high=high)
    chart = draw_chart(points, estimate, unit) if estimate else ''
    return CurveSection(points, unit, estimate, chart)


def draw_chart(
    points: Sequence[CurvePoint], estimate: CurvePoint, unit: str
) -> str:
    """Draw a learning curve as SVG, with a logarithmic x axis.

    Colors refer to the style sheet.
    """
    with rc_context({'svg.fonttype': 'none', 'svg.hashsalt': 'chart'}):
        figure = Figure((6.1, 3.5), layout='constrained')
        axes = figure.subplots()
        lowest = min(point.low for point in points)
        axes.set(xscale='log', xlabel=unit, ylabel=text('report.accuracy'))
        axes.set_ylim(math.floor(10 * lowest) / 10, 1)
        dashed = dict(ls='--', mfc=PAGE, label=text('report.estimated'))
        _plot(axes, [points[-1], estimate], **dashed)
        _plot(axes, points, label=text('report.measured_points'))
        _remove_clutter(axes)
        file = StringIO()
        metadata = dict.fromkeys(('Creator', 'Date', 'Format', 'Type'))
        with catch_warnings():
            # the browser's fonts have the letters of all languages
            filterwarnings('ignore', 'Glyph')
            figure.savefig(
                file, format='svg', transparent=True, metadata=metadata
            )
    svg = file.getvalue()
    for color, name in COLORS.items():
        svg = svg.replace(color, f'var(--{name})')
    return svg[svg.index('<svg') :]


def _plot(axes: Axes, points: Sequence[CurvePoint], **style: Any) -> None:
    x = [point.photos for point in points]
    low, high = [x.low for x in points], [x.high for x in points]
    axes.fill_between(x, low, high, color=BAR, alpha=0.2, linewidth=0)
    accuracies = [point.accuracy for point in points]
    axes.plot(x, accuracies, marker='o', color=BAR, **style)


def _remove_clutter(axes: Axes) -> None:
    """Remove chart clutter; keep grid, ticks, labels and legend."""
    axes.xaxis.set(
        major_locator=LogLocator(subs=(1, 2, 5)), major_formatter='{x:g}'
    )
    axes.yaxis.set(
        major_locator=MultipleLocator(0.1),
        major_formatter=PercentFormatter(1, 0),
    )
    axes.minorticks_off()
    axes.grid(axis='y', color=LINE)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelcolor=SOFT, labelsize=12)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(color=SOFT, size=12)
    axes.legend(frameon=False, labelcolor=SOFT, loc='lower right')
    axes.spines[:].set_visible(False)
