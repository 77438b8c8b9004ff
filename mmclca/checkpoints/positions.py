# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Positions and CLR tokens of a checkpoint, fitted to a backbone.

Of the backbone only the names and shapes of its parameters are asked, its grid
of patches where it has positions, and its cache where that has CLR tokens.
"""

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
    """Bring positions and CLR tokens into the backbone's form, in place.

    Rows of CLR tokens (the CLCA authors keep them at the end) move to
    ``cache.clr_pos``; CLR tokens and a distillation token that are missing
    are copies of CLS, that with its position; rows of zeros are added where a
    file has no position for CLS and the distillation token (DeiT III), or
    its rows are added to these tokens where the backbone has none; the grid is
    resized as timm does it. Rows that are no grid are left as they are, see
    :func:`explain_rows`.

    Args:
        backbone (ForeignWeights): The backbone that is to be loaded.
        state_dict (dict): With the names of the backbone.
        prefix (str): What the names begin with.

    Returns:
        tuple[list[str], list[str]]: What was resized, in words, and the keys
        of tokens that are new.
    """
    own, weights = dict(backbone.named_parameters()), below(state_dict, prefix)
    for name in weights:
        del state_dict[prefix + name]
    resized, cls_rows = _fit_pos_embed(backbone, own, weights)
    # before CLS takes up its position: theirs is in cache.clr_pos
    new = _init_clr(backbone, own, weights, cls_rows)
    new += _init_dist(own, weights)
    if cls_rows is not None and not _num_cls_rows(backbone):
        _add_to_tokens(backbone, cls_rows, weights)
    tables = _fit_tables(backbone, own, weights)
    state_dict.update({prefix + name: x for name, x in weights.items()})
    resized = [prefix + change for change in resized]
    return resized + tables, [prefix + name for name in new]


def below(state_dict: dict, prefix: str) -> dict:
    """Return the weights of a module by its own names."""
    keys = [key for key in state_dict if key.startswith(prefix)]
    return {key[len(prefix) :]: state_dict[key] for key in keys}


def _fit_tables(backbone, own: dict, weights: dict) -> list[str]:
    """Interpolate relative positions from another square grid, in place."""
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
    """Count the backbone's own positions before those of patches."""
    return backbone.pos_embed.size(1) - prod(backbone.patch_resolution)


def _fit_pos_embed(
    backbone, own: dict, weights: dict
) -> tuple[list[str], Tensor | None]:
    """Fit ``pos_embed`` of a state dict, in place.

    Returns:
        tuple[list[str], Tensor | None]: What was resized, in words, and the
        positions of the prefix in the file, (1, 0, C) if it has none; None
        where there is no telling.
    """
    if 'pos_embed' not in own:
        return [], None
    grid = tuple(backbone.patch_resolution)
    own_cls_rows = _num_cls_rows(backbone)
    tries = _cls_rows(backbone, own, weights)
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
    if own_cls_rows:
        rows = F.pad(cls_rows, (0, 0, 0, own_cls_rows))[:, :own_cls_rows]
        patches = torch.cat((rows, patches), dim=1)
    weights['pos_embed'] = patches
    resized = _changes(old, grid, own_cls_rows > 0 and not num_cls)
    return resized, cls_rows


def _add_to_tokens(backbone, rows: Tensor, weights: dict) -> None:
    """Add positions to tokens that have none, in place."""
    tokens = backbone.may_have_position
    for token, row in zip(tokens, rows.unbind(1), strict=False):
        if token in weights:
            weights[token] = weights[token] + row


def _cls_rows(backbone, own: dict, weights: dict) -> tuple[int, ...]:
    """Guess the rows before the patches in a state dict, likely first.

    They are those of CLS and the distillation token, if it has one. There
    may be none in a foreign file (DeiT III) and in one of mmpretrain's
    ``DeiT3``, known by its layer scale. As many rows as in a backbone without
    any for CLS, under its own name, are its own: 50 may be 5 x 10 patches.
    """
    rows = len(_prefix_of(backbone, own, weights))
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
    """Describe what was resized."""
    if old == grid and not no_cls:
        return []
    none = ' without CLS' if no_cls else ''
    (h, w), (new_h, new_w) = old, grid
    return [f'pos_embed from {h} x {w} patches{none} to {new_h} x {new_w}']


def _is_rows(pos) -> bool:
    return isinstance(pos, Tensor) and pos.dim() == 3


def _prefix_of(backbone, own: dict, weights: dict) -> list[str]:
    """List tokens before the patches; backbones may lack CLS."""
    known = {*weights, *({CLS} & own.keys())}
    return [name for name in backbone.may_have_position if name in known]


def _layout(pos, cls_rows: tuple[int, ...], num_clr: int, grid: tuple):
    """Split rows into CLS, a grid and CLR tokens; None if no grid.

    The backbone's own grid goes before a square one, but where it is a
    rectangle, CLS and a square go before a rectangle without CLS: 50 rows
    are 1 + 7 x 7 rather than 5 x 10.
    """
    if not _is_rows(pos):
        return None
    tries = [(num_cls, own) for own in (True, False) for num_cls in cls_rows]
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

    Empty if the number of rows is not the problem.
    """
    pos = weights.get('pos_embed')
    if not _is_rows(pos) or pos.size(1) == own['pos_embed'].size(1):
        return ''
    num_tokens = len(_prefix_of(backbone, own, weights))
    height, width = backbone.patch_resolution
    return (
        f' ({pos.size(1)} rows, {num_tokens} of them before the patches; the '
        f'rest matches neither a square grid nor {height} x {width}; set '
        "img_size to the image size of the file's model)"
    )


def _init_dist(own: dict, weights: dict) -> list[str]:
    """Initialize a distillation token that is missing by CLS, in place.

    Returns:
        list[str]: The keys of what is new.
    """
    if DIST not in own or DIST in weights or CLS not in weights:
        return []
    weights[DIST] = weights[CLS].clone()
    return [DIST]


def _init_clr(
    backbone, own: dict, weights: dict, cls_rows: Tensor | None
) -> list[str]:
    """Initialize CLR tokens by the CLS token of a state dict, in place.

    Nothing happens where the state dict has as many CLR tokens already.
    Their positions are those that the backbone has drawn, and zero where
    CLS has none. With ``clr_at_cls`` that of CLS is added, so that the drawn
    ones distinguish several.

    Returns:
        list[str]: The keys of what is new.
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
