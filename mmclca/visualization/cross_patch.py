# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Cross-patch matrices of ResMLP, and weight sparsity."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from torch import Tensor

from mmclca.errors import Error
from mmclca.utils.messages import check_integer

from .figures import Panel, draw_cells, save_figure
from .painting import paint_signed

COLUMNS = 6  # layers per row
SMALL = 0.05  # share of the largest weight, as in the thesis
MATRICES = dict(
    A='A, across patches', B='B, first of the FFN', C='C, second of the FFN'
)


def cross_patch_weights(backbone: BaseBackbone) -> dict[str, list[Tensor]]:
    """Return the matrices A, B and C per layer; see :meth:`ResMLP.matrices`.

    Raises an Error if the backbone lacks linear layers across patches.
    """
    if not hasattr(backbone, 'matrices'):
        raise Error(
            f'{type(backbone).__name__} has no linear layers across patches: '
            "use dict(type='mmclca.ResMLP', token_mixer='linear')"
        )
    matrices = backbone.matrices()
    return {k: [x.detach() for x in layers] for k, layers in matrices.items()}


def sparsity(weight: Tensor, share: float = SMALL) -> float:
    """Share of weights whose absolute value is below ``share`` x maximum."""
    size = weight.abs()
    return (size < share * size.max()).double().mean().item()


def rows_as_maps(
    weight: Tensor, grid: tuple[int, int], side: int
) -> np.ndarray:
    """Arrange rows from a cross-patch matrix (N, N) in a grid.

    The rows belong to ``side`` x ``side`` patches in the center of the patch
    grid (h, w), or to as many as exist. Returns (k (h + 1) - 1, l (w + 1) - 1)
    for k x l rows; NaN between the maps.
    """
    height, width = grid
    maps = weight.view(height, width, height, width)
    for dim in (0, 1):
        number = min(side, grid[dim])
        maps = maps.narrow(dim, (grid[dim] - number) // 2, number)
    framed = torch.nn.functional.pad(maps, (0, 1, 0, 1), value=torch.nan)
    joined = framed.permute(0, 2, 1, 3).flatten(2, 3).flatten(0, 1)
    return joined[:-1, :-1].cpu().numpy()


def draw_cross_patch(
    backbone: BaseBackbone,
    out: str,
    layers: Sequence[int] | None = None,
    side: int = 6,
) -> None:
    """Draw rows of the cross-patch matrices, and sparsity by layer.

    Touvron's thesis (2022), figures 4.2 and 4.3. ``layers`` are drawn
    (default: all), with ``side`` as in :func:`rows_as_maps`. Raises a
    Error without linear layers across patches, or if a layer does not
    exist.
    """
    weights, depth = cross_patch_weights(backbone), len(backbone.layers)
    drawn_layers = layers or range(depth)
    for n in drawn_layers:
        check_integer(0, depth - 1, layers=n)
    grid = backbone.patch_resolution
    cells = [
        Panel(
            paint_signed(rows_as_maps(weights['A'][n], grid, side)),
            f'layer {n}',
        )
        for n in drawn_layers
    ]
    rows = [cells[n : n + COLUMNS] for n in range(0, len(cells), COLUMNS)]
    heights = 1.75 * len(rows), 2.6
    width = max(1.6 * len(rows[0]), 6)
    figure = Figure((width, sum(heights)), layout='constrained')
    top, below = figure.subfigures(2, 1, height_ratios=heights)
    draw_cells(top, rows, width)
    _draw_sparsity(below.subplots(), weights)
    save_figure(figure, out)


def _draw_sparsity(axis: Axes, weights: dict[str, list[Tensor]]) -> None:
    for name, of_layers in weights.items():
        shares = [100 * sparsity(weight) for weight in of_layers]
        axis.plot(shares, marker='o', markersize=3, label=MATRICES[name])
    axis.set_xlabel('layer', fontsize=9)
    axis.set_ylabel(
        f'weights below {SMALL:.0%}\nof the maximum (%)', fontsize=9
    )
    axis.set_xticks(range(len(of_layers)))
    axis.tick_params(labelsize=8)
    axis.set_ylim(0, 100)
    axis.legend(fontsize=8, frameon=False)
