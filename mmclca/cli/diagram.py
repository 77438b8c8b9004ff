# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Boxes, arrows and words of the drawings of models in the docs."""

from pathlib import Path

from .parser import Parser

# of Okabe and Ito, which the colour-blind can tell apart
ORANGE, SKY, GREEN, INK = '#D55E00', '#56B4E9', '#009E73', '#333333'
BLUE, YELLOW, PURPLE = '#0072B2', '#E69F00', '#CC79A7'


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
