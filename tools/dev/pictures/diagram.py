# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Boxes, arrows and text in drawings."""

# Okabe and Ito's colors, safe for color-blind readers
ORANGE, SKY, GREEN, INK = '#D55E00', '#56B4E9', '#009E73', '#333333'
BLUE, YELLOW, PURPLE = '#0072B2', '#E69F00', '#CC79A7'
HIGH, MARGIN = 0.62, 0.2  # height of a box in a branch, space around it


def canvas(width, height, xlim, ylim):
    """Return a figure without axes, in which x and y have the same scale."""
    import matplotlib.pyplot as plt

    plt.rcParams['font.size'] = 9
    figure, axes = plt.subplots(
        figsize=(width, height), layout='constrained', dpi=150
    )
    axes.set(xlim=xlim, ylim=ylim, aspect='equal')
    axes.axis('off')
    return figure, axes


def write(axes, x, y, text, color=INK, **style):
    """Write text centered at a point."""
    style = dict(ha='center', va='center') | style
    axes.text(x, y, text, color=color, **style)


def arrow(axes, start, end, color=INK):
    """Draw an arrow between two points (x, y)."""
    style = dict(arrowstyle='-|>', color=color, lw=1.4, shrinkA=0, shrinkB=0)
    axes.annotate('', end, start, arrowprops=style)


def line(axes, xs, ys, color=INK):
    """Draw a line without an arrow."""
    axes.plot(xs, ys, color=color, lw=1.2, solid_capstyle='round')


def box(axes, left, right, middle, text='', color=INK, height=HIGH, **style):
    """Draw a box with round corners and a text in it."""
    from matplotlib.patches import FancyBboxPatch

    shape = FancyBboxPatch(
        (left, middle - height / 2),
        right - left,
        height,
        boxstyle='round,pad=0,rounding_size=0.05',
        facecolor='white',
        edgecolor=color,
        linewidth=1.4,
    )
    axes.add_patch(shape)
    write(axes, (left + right) / 2, middle, text, **style)


def squares(axes, corners, side, colors):
    """Draw filled squares at their lower left corners."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    shapes = [Rectangle(corner, side, side) for corner in corners]
    axes.add_collection(
        PatchCollection(shapes, facecolors=colors, linewidths=0)
    )


def draw_residual(axes, x, y, branches, wide):
    """Draw branches from a stream at (x, y); return the height of their sum.

    Each branch has equally many pairs of text and color, bottom to top.
    """
    number = len(branches[0])
    end = y + number * (HIGH + MARGIN)
    top = end + 0.23
    for branch, boxes in enumerate(branches):
        left = x + 0.3 + branch * (wide + MARGIN)
        middle = left + wide / 2
        line(axes, (x, middle, middle), (y, y, y + MARGIN))
        for row, (label, color) in enumerate(boxes):
            bottom = y + MARGIN + row * (HIGH + MARGIN)
            box(axes, left, left + wide, bottom + HIGH / 2, label, color)
            if row:
                line(axes, (middle, middle), (bottom - MARGIN, bottom))
        line(axes, (middle, middle, x), (end, top, top))
    axes.plot(x, top, 'o', ms=11, mfc='white', mec=INK, zorder=3)
    write(axes, x, top, '+', zorder=4)
    return top


def mark_reducer(axes, x, y):
    """Mark the reducer in the stream."""
    write(axes, x - 0.1, y, 'reducer', ORANGE, ha='right')
    axes.plot(x, y, '>', ms=5, color=ORANGE)
