# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Adapt positions and CLR tokens from a checkpoint to a backbone."""

from math import isqrt, prod

import torch
import torch.nn.functional as F
from timm import layers
from torch import Tensor

from .families.family import POS_EMBED

FOREIGN_POS_EMBED = POS_EMBED.removeprefix('backbone.')
CLS, DIST = 'cls_token', 'dist_token'
CLR, CLR_POS = 'cache.clr', 'cache.clr_pos'
TABLE = 'relative_position_bias_table'


def fit_positions(
    backbone, state_dict: dict, prefix: str
) -> tuple[list[str], list[str]]:
    """Adapt positions and CLR tokens in a state dict to a backbone.

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
        state_dict (dict): Weights with backbone names, changed in place.
        prefix (str): Prefix in ``state_dict``.

    Returns:
        tuple[list[str], list[str]]: Descriptions of resized parameters, and
        names of added parameters.
    """
    own, weights = dict(backbone.named_parameters()), below(state_dict, prefix)
    for name in weights:
        del state_dict[prefix + name]
    resized, cls_rows = _fit_pos_embed(backbone, own, weights)
    # before CLS takes up its position, as CLR tokens have their own
    new = _init_clr(backbone, own, weights, cls_rows)
    new += _init_dist(own, weights)
    if cls_rows is not None and not _num_cls_rows(backbone):
        _add_to_tokens(backbone, cls_rows, weights)
    tables = _fit_tables(backbone, own, weights)
    state_dict.update({prefix + name: x for name, x in weights.items()})
    resized = [prefix + change for change in resized]
    return resized + tables, [prefix + name for name in new]


def below(state_dict: dict, prefix: str) -> dict:
    """Return the weights with a prefix, without the prefix."""
    keys = [key for key in state_dict if key.startswith(prefix)]
    return {key[len(prefix) :]: state_dict[key] for key in keys}


def _fit_tables(backbone, own: dict, weights: dict) -> list[str]:
    """Resize relative position tables from a square grid, in place."""
    sides = set()
    for name in [name for name in own if TABLE in name and name in weights]:
        table, shape = weights[name], own[name].shape
        if table.shape == shape:
            continue
        side = isqrt(max(len(table) - 3, 0))
        if side**2 == len(table) - 3 and table.size(1) == shape[1]:
            weights[name] = layers.resize_rel_pos_bias_table_simple(
                table, backbone.patch_resolution, shape
            )
            sides.add(side // 2 + 1)
    grid = '{} x {}'.format(*backbone.patch_resolution)
    return [f'{TABLE}s from {n} x {n} to {grid} patches' for n in sides]


def _num_cls_rows(backbone) -> int:
    """Count the positions before the patches in a backbone."""
    return backbone.pos_embed.size(1) - prod(backbone.patch_resolution)


def _fit_pos_embed(
    backbone, own: dict, weights: dict
) -> tuple[list[str], Tensor | None]:
    """Adapt ``pos_embed`` of a state dict, in place.

    Returns:
        tuple[list[str], Tensor | None]: Descriptions of resized
        parameters, and the positions before the patches in the file, (1, n,
        C), None if unknown. A missing distillation token has that of CLS.
    """
    if 'pos_embed' not in own:
        return [], None
    grid = tuple(backbone.patch_resolution)
    own_num_cls = _num_cls_rows(backbone)
    tries = _possible_num_cls(backbone, own, weights)
    if FOREIGN_POS_EMBED in weights:
        weights['pos_embed'] = weights.pop(FOREIGN_POS_EMBED)
    pos = weights.get('pos_embed')
    joined = CLR in weights and CLR_POS not in weights
    num_clr = weights[CLR].size(1) if joined else 0
    layout = _layout(pos, tries, num_clr, grid)
    if layout is None:
        return [], None
    num_cls, old, num_clr = layout
    cls_rows, patches, clr_rows = pos.split((num_cls, prod(old), num_clr), 1)
    if DIST in own and DIST not in weights:
        cls_rows = cls_rows.repeat(1, 2, 1)
    if joined:
        no_rows = torch.zeros_like(weights[CLR])
        weights[CLR_POS] = clr_rows if num_cls else no_rows
    if old != grid:
        patches = layers.resample_abs_pos_embed(patches, grid, old, 0)
    if own_num_cls:
        rows = F.pad(cls_rows, (0, 0, 0, own_num_cls))[:, :own_num_cls]
        patches = torch.cat((rows, patches), dim=1)
    weights['pos_embed'] = patches
    resized = _changes(old, grid, own_num_cls > 0 and not num_cls)
    return resized, cls_rows


def _add_to_tokens(backbone, rows: Tensor, weights: dict) -> None:
    """Add positions to the tokens before the patches, in place."""
    tokens = backbone.may_have_position
    for token, row in zip(tokens, rows.unbind(1), strict=False):
        if token in weights:
            weights[token] = weights[token] + row


def _possible_num_cls(backbone, own: dict, weights: dict) -> tuple[int, ...]:
    """Return possible row counts before the patches, the likely first.

    Usually CLS and the distillation token have a row each. Foreign files
    (DeiT III) and ``DeiT3`` in mmpretrain, recognized by its layer scale, may
    lack them. If the backbone lacks a row for CLS, an equal row count means
    an equal layout: 50 rows may be 5 x 10 patches.
    """
    rows = len(_prefix_tokens(backbone, own, weights))
    if not rows:
        return (0,)
    if CLS in own and not _num_cls_rows(backbone):
        pos = weights.get('pos_embed')
        same = _is_rows(pos) and pos.size(1) == own['pos_embed'].size(1)
        return (0,) if same else (0, rows)
    marks = (FOREIGN_POS_EMBED, 'layers.0.attn.gamma1.weight')
    may_have_none = any(mark in weights for mark in marks)
    return (rows, 0) if may_have_none else (rows,)


def _changes(old: tuple, grid: tuple, no_cls: bool) -> list[str]:
    """Describe a change of the grid or a new CLS position."""
    if old == grid and not no_cls:
        return []
    none = ' without CLS' if no_cls else ''
    (h, w), (new_h, new_w) = old, grid
    return [f'pos_embed from {h} x {w} patches{none} to {new_h} x {new_w}']


def _is_rows(pos) -> bool:
    return isinstance(pos, Tensor) and pos.dim() == 3


def _prefix_tokens(backbone, own: dict, weights: dict) -> list[str]:
    """List the tokens before the patches in the file, and CLS of either."""
    known = {*weights, *({CLS} & own.keys())}
    return [name for name in backbone.may_have_position if name in known]


def _layout(pos, possible: tuple[int, ...], num_clr: int, grid: tuple):
    """Return the number of CLS rows, the grid, and the number of CLR rows.

    None without a grid. The backbone grid is tried before a square grid. If it
    is not square, CLS and a square are tried before a grid without CLS: 50
    rows are 1 + 7 x 7 rather than 5 x 10.
    """
    if not _is_rows(pos):
        return None
    tries = [(num_cls, own) for own in (True, False) for num_cls in possible]
    if grid[0] != grid[1]:
        tries = sorted(tries, reverse=True)
    for num_cls, own in tries:
        clr_rows = num_clr if num_cls else 0
        num_patches = max(pos.size(1) - num_cls - clr_rows, 0)
        old = grid if own else (isqrt(num_patches),) * 2
        if num_patches and prod(old) == num_patches:
            return num_cls, old, clr_rows
    return None


def explain_rows(backbone, own: dict, weights: dict) -> str:
    """Explain a position embedding without a valid grid, for an error.

    Empty if the row count is not the problem.
    """
    pos = weights.get('pos_embed')
    if not _is_rows(pos) or pos.size(1) == own['pos_embed'].size(1):
        return ''
    num_tokens = len(_prefix_tokens(backbone, own, weights))
    height, width = backbone.patch_resolution
    return (
        f' ({pos.size(1)} rows, {num_tokens} of them before the patches; the '
        f'rest matches neither a square grid nor {height} x {width}; set '
        "img_size to the image size of the file's model)"
    )


def _init_dist(own: dict, weights: dict) -> list[str]:
    """Copy CLS to a missing distillation token, in place; list new keys."""
    if DIST not in own or DIST in weights or CLS not in weights:
        return []
    weights[DIST] = weights[CLS].clone()
    return [DIST]


def _init_clr(
    backbone, own: dict, weights: dict, cls_rows: Tensor | None
) -> list[str]:
    """Copy CLS to CLR tokens, in place, unless the file has as many.

    Return the new keys. Positions are the random ones from the backbone, or
    zero if CLS has none. With ``clr_at_cls``, the CLS position is added.
    """
    if CLR not in own or CLS not in weights:
        return []
    num_clr = own[CLR].size(1)
    if CLR in weights and weights[CLR].size(1) == num_clr:
        return []
    weights[CLR] = weights[CLS].repeat(1, num_clr, 1)
    pos = backbone.cache.clr_pos.detach()
    if cls_rows is not None and not cls_rows.size(1):
        pos = torch.zeros_like(pos)
    elif cls_rows is not None and backbone.cache.clr_at_cls:
        pos = pos + cls_rows[:, :1].to(pos)
    weights[CLR_POS] = pos
    return [CLR, CLR_POS]
