# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Boxes, arrows and words of the drawings of models in the docs."""

from pathlib import Path

from .parser import Parser

# of Okabe and Ito, which the colour-blind can tell apart
ORANGE, SKY, GREEN, INK = '#D55E00', '#56B4E9', '#009E73', '#333333'
BLUE, YELLOW, PURPLE = '#0072B2', '#E69F00', '#CC79A7'
HIGH, MARGIN = 0.62, 0.2  # of a box in a branch, and around it


def write(axes, x, y, text, colour=INK, **style):
    """Text around a point."""
    axes.text(x, y, text, ha='center', va='center', color=colour, **style)


def arrow(axes, x, start, end, colour=INK):
    """An arrow upwards or downwards."""
    style = dict(arrowstyle='-|>', color=colour, lw=1.4, shrinkA=0)
    axes.annotate('', (x, end), (x, start), arrowprops=style)


def box(axes, left, right, middle, height, colour=INK):
    """A box with round corners."""
    from matplotlib.patches import FancyBboxPatch

    shape = FancyBboxPatch(
        (left, middle - height / 2),
        right - left,
        height,
        boxstyle='round,pad=0,rounding_size=0.05',
        facecolor='white',
        edgecolor=colour,
        linewidth=1.4,
    )
    axes.add_patch(shape)


def boxed(axes, left, right, middle, text, colour=INK, height=HIGH):
    """Words in a box."""
    box(axes, left, right, middle, height, colour)
    write(axes, (left + right) / 2, middle, text)


def line(axes, xs, ys, colour=INK):
    """A line without an arrow."""
    axes.plot(xs, ys, color=colour, lw=1.2, solid_capstyle='round')


def draw_residual(axes, x, y, branches, wide):
    """Branches that read the stream at ``x`` side by side, and their sum.

    Args:
        axes (Axes): Where to draw.
        x (float): Place of the stream.
        y (float): Height at which the branches leave it.
        branches (Sequence[Sequence[tuple]]): Words and colour of the boxes
            of each, from below to above; as many in all of them.
        wide (float): Width of a box.

    Returns:
        float: Height of the sum.
    """
    number = len(branches[0])
    end = y + MARGIN + number * (HIGH + MARGIN) - MARGIN
    top = end + 0.23
    for branch, boxes in enumerate(branches):
        left = x + 0.3 + branch * (wide + MARGIN)
        middle = left + wide / 2
        line(axes, (x, middle, middle), (y, y, y + MARGIN))
        for row, (label, colour) in enumerate(boxes):
            bottom = y + MARGIN + row * (HIGH + MARGIN)
            boxed(axes, left, left + wide, bottom + HIGH / 2, label, colour)
            if row:
                line(axes, (middle, middle), (bottom - MARGIN, bottom))
        line(axes, (middle, middle, x), (end, top, top))
    axes.plot(x, top, 'o', ms=11, mfc='white', mec=INK, zorder=3)
    write(axes, x, top, '+', zorder=4)
    return top


def mark_reducer(axes, x, y):
    """Where a reducer changes the tokens of the stream at ``x``."""
    style = dict(ha='right', va='center', color=ORANGE)
    axes.text(x - 0.1, y, 'reducer', **style)
    axes.plot(x, y, '>', ms=5, color=ORANGE)


def write_picture(draw, words, out, dpi):
    """What a tool that draws does: read ``--out``, draw and save.

    Args:
        draw (Callable): Makes the figure.
        words (str): What the tool does.
        out (Path): Where the picture goes unless it is told.
        dpi (int): Pixels an inch.
    """
    parser = Parser(description=words)
    parser.add_argument('--out', type=Path, default=out)
    out = parser.parse_args().out
    draw().savefig(out, dpi=dpi, bbox_inches='tight')
