# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Callable, Iterable

from matplotlib.axes import Axes


def label_points(
    axis: Axes,
    points: Iterable[tuple[float, float, str]],
    width: Callable[[str, str], float],
    height: float,
    **style,
) -> None:
    """Write texts beside points, of those that would overlap the first.

    Args:
        axis (matplotlib.axes.Axes): Its limits and its place in the figure
            are final.
        points (Iterable[tuple[float, float, str]]): In its data, with the
            texts.
        width (Callable): Points (1/72 inch) that two texts need beside each
            other.
        height (float): Points that they need above each other.
        **style: Of matplotlib's ``annotate``.
    """
    taken = []
    for x, y, text in points:
        a, b = axis.transData.transform((x, y)) * 72 / axis.figure.dpi
        if all(
            abs(a - c) >= width(text, other) or abs(b - d) >= height
            for c, d, other in taken
        ):
            taken.append((a, b, text))
            axis.annotate(text, (x, y), textcoords='offset points', **style)
