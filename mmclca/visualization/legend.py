# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch

from .painting import DROPPED, FUSED, HEAT, INK, KEPT, MERGED, fade, fuse

SAMPLE = np.full((1, 1, 3), 128.0)
TITLES = {
    KEPT: 'kept: as photographed',
    MERGED: 'merged: mean colour of a group',
    FUSED: 'fused with small weights',
    DROPPED: 'dropped',
}
# no colour stands for kept and merged patches, which have their own
FILLS = {FUSED: fuse(SAMPLE).ravel(), DROPPED: fade(SAMPLE).ravel()}
EDGES = {KEPT: SAMPLE.ravel(), MERGED: INK}


def add_legend(figure: Figure, kinds: Iterable[int]) -> None:
    """Say below a figure how patches of some kinds are drawn.

    Args:
        figure (Figure): The figure, of constrained layout.
        kinds (Iterable[int]): See :func:`mmclca.visualization.kinds`.
    """
    shown = [kind for kind in TITLES if kind in set(kinds)]
    handles = [
        Patch(
            facecolor=_colour(FILLS.get(kind)),
            edgecolor=_colour(EDGES.get(kind)),
            linewidth=0.8 if kind == KEPT else 1.8,
            label=TITLES[kind],
        )
        for kind in shown
    ]
    if handles:
        place = dict(loc='outside lower center', ncols=len(handles))
        square = dict(handlelength=1.2, handleheight=1.2)
        style = dict(fontsize=9, frameon=False, **square)
        figure.legend(handles=handles, **place, **style)


def _colour(rgb: np.ndarray | None):
    return 'none' if rgb is None else rgb / 255


def add_heat_bar(figure: Figure, axes, label: str, ends) -> None:
    """Put a colour bar below a figure, with words at its ends.

    Args:
        figure (Figure): The figure, of constrained layout.
        axes (Sequence[Axes]): The axes that it is for.
        label (str): What the colours mean.
        ends (tuple[str, str]): What the dark and the bright end mean.
    """
    place = dict(location='bottom', shrink=0.5, aspect=25, pad=0.02)
    bar = figure.colorbar(ScalarMappable(cmap=HEAT), ax=list(axes), **place)
    bar.set_ticks([0, 1], labels=ends, fontsize=8)
    bar.set_label(label, fontsize=9, labelpad=1)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)


def write_values(axis: Axes, drawn: AxesImage, form: str, size: int) -> None:
    """Write the values of a matrix into its cells.

    Args:
        axis (Axes): Where it is drawn.
        drawn (AxesImage): The matrix, in colours that are bright for what is
            large.
        form (str): How to format a value.
        size (int): Size of the font.
    """
    for (row, column), value in np.ndenumerate(drawn.get_array()):
        ink = 'black' if drawn.norm(value) > 0.6 else 'white'
        style = dict(color=ink, ha='center', va='center', size=size)
        axis.text(column, row, form.format(value), **style)
