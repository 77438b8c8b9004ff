# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit positions and CLR tokens of a checkpoint to a backbone."""

from dataclasses import dataclass
from math import isqrt, prod

import torch
import torch.nn.functional as F
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from timm import layers
from torch import Tensor

from mmclca.checkpoints.families.family import POS_EMBED
from mmclca.checkpoints.report import LoadReport

FOREIGN_POS_EMBED = POS_EMBED.removeprefix('backbone.')
CLS, DIST = 'cls_token', 'dist_token'
CLR, CLR_POS = 'cache.clr', 'cache.clr_pos'
TABLE = 'relative_position_bias_table'


def fit_positions(
    backbone: BaseBackbone, weights: dict, prefix: str, report: LoadReport
) -> None:
    """Adapt positions and CLR tokens in weights to a backbone, in place.

    - CLR rows, at the end in files by the CLCA authors, move to
      ``cache.clr_pos``.
    - Missing CLR tokens, or another number of them, are copied from CLS, and
      a missing distillation token from CLS with its position.
    - If the file lacks a position for CLS (DeiT III), zero rows are added.
      If the backbone lacks one, the position is added to its tokens.
    - Grid and relative position tables are resized as in timm. Rows that do
      not form a grid are kept, see :func:`explain_rows`.

    Args:
        backbone (ForeignWeights): The backbone.
        weights (dict): Weights with backbone names.
        prefix (str): Prefix in ``weights``.
        report (LoadReport): Gets resized and added parameters.
    """
    tensors = take_prefix(weights, prefix)
    for name in tensors:
        del weights[prefix + name]
    fit = _PositionFit(backbone, tensors)
    cls_rows = fit.fit_pos_embed()
    # before CLS takes up its position, as CLR tokens have their own
    new = fit.start_clr(cls_rows) + fit.start_dist()
    if cls_rows is not None and not fit.num_cls_rows:
        fit.add_to_tokens(cls_rows)
    resized = [prefix + change for change in fit.resized]
    report.resized += resized + fit.fit_tables()
    report.new += [prefix + name for name in new]
    weights.update({prefix + name: x for name, x in tensors.items()})


def take_prefix(weights: dict, prefix: str) -> dict:
    """Return the weights with a prefix, without the prefix."""
    keys = [key for key in weights if key.startswith(prefix)]
    return {key[len(prefix) :]: weights[key] for key in keys}


@dataclass(frozen=True)
class _Layout:
    """Rows of a position embedding: CLS, a grid of patches, CLR."""

    num_cls: int
    grid: tuple[int, int]
    num_clr: int


class _PositionFit:
    """Changes of weights, in place, until they fit a backbone."""

    def __init__(self, backbone: BaseBackbone, weights: dict[str, Tensor]):
        self.backbone, self.weights = backbone, weights
        self.params = dict(backbone.named_parameters())
        self.grid = tuple(backbone.patch_resolution)
        self.resized: list[str] = []

    @property
    def num_cls_rows(self) -> int:
        """Number of positions before the patches in the backbone."""
        return self.backbone.pos_embed.size(1) - prod(self.grid)

    def fit_pos_embed(self) -> Tensor | None:
        """Adapt ``pos_embed``.

        Returns:
            Tensor | None: The positions before the patches in the file, (1,
            n, C), None if unknown. A missing distillation token has that of
            CLS.
        """
        weights = self.weights
        if 'pos_embed' not in self.params:
            return None
        counts = self._list_cls_counts()
        if FOREIGN_POS_EMBED in weights:
            weights['pos_embed'] = weights.pop(FOREIGN_POS_EMBED)
        pos = weights.get('pos_embed')
        joined = CLR in weights and CLR_POS not in weights
        num_clr = weights[CLR].size(1) if joined else 0
        if pos is None or not _has_rows(pos):
            return None
        layout = _find_layout(pos.size(1), counts, num_clr, self.grid)
        if layout is None:
            return None
        cls_rows, patches, clr_rows = pos.split(
            (layout.num_cls, prod(layout.grid), layout.num_clr), 1
        )
        if DIST in self.params and DIST not in weights:
            cls_rows = cls_rows.repeat(1, 2, 1)
        if joined:
            no_rows = torch.zeros_like(weights[CLR])
            weights[CLR_POS] = clr_rows if layout.num_cls else no_rows
        if layout.grid != self.grid:
            patches = layers.resample_abs_pos_embed(
                patches, self.grid, layout.grid, 0
            )
        num_cls = self.num_cls_rows
        if num_cls:
            rows = F.pad(cls_rows, (0, 0, 0, num_cls))[:, :num_cls]
            patches = torch.cat((rows, patches), dim=1)
        weights['pos_embed'] = patches
        self._note_change(layout, lost_cls=num_cls > 0 and not layout.num_cls)
        return cls_rows

    def _note_change(self, layout: _Layout, lost_cls: bool) -> None:
        """Describe a change of the grid or a new CLS position."""
        if layout.grid == self.grid and not lost_cls:
            return
        none = ' without CLS' if lost_cls else ''
        (h, w), (new_h, new_w) = layout.grid, self.grid
        self.resized.append(
            f'pos_embed from {h} x {w} patches{none} to {new_h} x {new_w}'
        )

    def add_to_tokens(self, rows: Tensor) -> None:
        """Add positions to the tokens before the patches."""
        tokens = self.backbone.may_have_position
        for token, row in zip(tokens, rows.unbind(1), strict=False):
            if token in self.weights:
                self.weights[token] = self.weights[token] + row

    def _list_cls_counts(self) -> tuple[int, ...]:
        """List possible row counts before the patches, the likely first.

        Usually CLS and the distillation token have a row each. Foreign files
        (DeiT III) and ``DeiT3`` in mmpretrain, recognized by its layer scale,
        may lack them. If the backbone lacks a row for CLS, an equal row count
        means an equal layout: 50 rows may be 5 x 10 patches.
        """
        rows = _count_prefix_tokens(self.backbone, self.params, self.weights)
        if not rows:
            return (0,)
        if CLS in self.params and not self.num_cls_rows:
            pos = self.weights.get('pos_embed')
            count = self.params['pos_embed'].size(1)
            if pos is None or not _has_rows(pos):
                return (0, rows)
            same = pos.size(1) == count
            return (0,) if same else (0, rows)
        marks = (FOREIGN_POS_EMBED, 'layers.0.attn.gamma1.weight')
        may_have_none = any(mark in self.weights for mark in marks)
        return (rows, 0) if may_have_none else (rows,)

    def start_dist(self) -> list[str]:
        """Copy CLS to a missing distillation token; list new names."""
        weights = self.weights
        if DIST not in self.params or DIST in weights or CLS not in weights:
            return []
        weights[DIST] = weights[CLS].clone()
        return [DIST]

    def start_clr(self, cls_rows: Tensor | None) -> list[str]:
        """Start CLR tokens at CLS unless the file has as many.

        Return the new names.
        """
        weights = self.weights
        if CLR not in self.params or CLS not in weights:
            return []
        num_clr = self.params[CLR].size(1)
        if CLR in weights and weights[CLR].size(1) == num_clr:
            return []
        cache = self.backbone.cache
        weights[CLR], weights[CLR_POS] = cache.start_at(weights[CLS], cls_rows)
        return [CLR, CLR_POS]

    def fit_tables(self) -> list[str]:
        """Resize relative position tables from a square grid."""
        sides = set()
        for name in [x for x in self.params if TABLE in x]:
            table, shape = self.weights.get(name), self.params[name].shape
            if table is None or table.shape == shape:
                continue
            side = isqrt(max(len(table) - 3, 0))
            if side**2 == len(table) - 3 and table.size(1) == shape[1]:
                self.weights[name] = layers.resize_rel_pos_bias_table_simple(
                    table, self.grid, shape
                )
                sides.add(side // 2 + 1)
        grid = '{} x {}'.format(*self.grid)
        return [f'{TABLE}s from {n} x {n} to {grid} patches' for n in sides]


def _has_rows(pos: object) -> bool:
    return isinstance(pos, Tensor) and pos.dim() == 3


def _count_prefix_tokens(
    backbone: BaseBackbone, params: dict, weights: dict
) -> int:
    """Count the tokens before the patches in the file, and CLS of either."""
    names = {*weights, *({CLS} & params.keys())}
    return sum(name in names for name in backbone.may_have_position)


def _find_layout(
    num_rows: int, counts: tuple[int, ...], num_clr: int, grid: tuple[int, int]
) -> _Layout | None:
    """Find the layout of position rows, None without a grid.

    The backbone grid is tried before a square grid. If it is not square, CLS
    and a square are tried before a grid without CLS: 50 rows are 1 + 7 x 7
    rather than 5 x 10. ``counts`` are possible numbers of CLS rows.
    """
    tries = [(count, same) for same in (True, False) for count in counts]
    if grid[0] != grid[1]:
        tries = sorted(tries, reverse=True)
    for num_cls, same_grid in tries:
        clr_rows = num_clr if num_cls else 0
        num_patches = max(num_rows - num_cls - clr_rows, 0)
        side = isqrt(num_patches)
        old = grid if same_grid else (side, side)
        if num_patches and prod(old) == num_patches:
            return _Layout(num_cls, old, clr_rows)
    return None


def explain_rows(backbone: BaseBackbone, weights: dict) -> str:
    """Explain a position embedding without a valid grid, for an error.

    Empty if the row count is not the problem.
    """
    pos, params = weights.get('pos_embed'), dict(backbone.named_parameters())
    if pos is None or not _has_rows(pos):
        return ''
    if pos.size(1) == params['pos_embed'].size(1):
        return ''
    num_tokens = _count_prefix_tokens(backbone, params, weights)
    height, width = backbone.patch_resolution
    return (
        f' ({pos.size(1)} rows, {num_tokens} of them before the patches; the '
        f'rest matches neither a square grid nor {height} x {width}; set '
        "img_size to the image size of the file's model)"
    )
