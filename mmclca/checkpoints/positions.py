# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Positions and CLR tokens of a checkpoint, fitted to a backbone.

Of the backbone only the names and shapes of its parameters are asked, its grid
of patches where it has positions, and its cache where that has CLR tokens.
"""

from math import isqrt, prod

import torch
import torch.nn.functional as F
from timm.layers import (
    resample_abs_pos_embed,
    resize_rel_pos_bias_table_simple,
)
from torch import Tensor

from .families.family import POS_EMBED

FOREIGN_POS_EMBED = POS_EMBED.removeprefix('backbone.')
NAMES = ('pos_embed', 'cls_token', 'cache.clr', 'cache.clr_pos')
DIST = 'dist_token'
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
    resized, cls_rows = _fit_pos_embed(backbone, state_dict, prefix)
    # before CLS takes up its position: theirs is in cache.clr_pos
    new = _init_clr(backbone, state_dict, prefix, cls_rows)
    new += _init_dist(backbone, state_dict, prefix)
    if cls_rows is not None and not _num_cls_rows(backbone):
        _add_to_tokens(backbone, cls_rows, state_dict, prefix)
    return resized + _fit_tables(backbone, state_dict, prefix), new


def _fit_tables(backbone, state_dict: dict, prefix: str) -> list[str]:
    """Interpolate relative positions from another square grid, in place."""
    sides = set()
    for name, own in backbone.named_parameters():
        table = state_dict.get(prefix + name) if TABLE in name else None
        if table is None or table.shape == own.shape:
            continue
        side = isqrt(max(len(table) - 3, 0))
        if side**2 == len(table) - 3 and table.size(1) == own.size(1):
            state_dict[prefix + name] = resize_rel_pos_bias_table_simple(
                table, backbone.patch_resolution, own.shape
            )
            sides.add(side // 2 + 1)
    grid = '{} x {}'.format(*backbone.patch_resolution)
    return [f'{TABLE}s from {n} x {n} to {grid} patches' for n in sides]


def _num_cls_rows(backbone) -> int:
    """Count the backbone's own positions before those of patches."""
    return backbone.pos_embed.size(1) - prod(backbone.patch_resolution)


def _fit_pos_embed(
    backbone, state_dict: dict, prefix: str
) -> tuple[list[str], Tensor | None]:
    """Fit ``pos_embed`` of a state dict, in place.

    Returns:
        tuple[list[str], Tensor | None]: What was resized, in words, and the
        positions of the prefix in the file, (1, 0, C) if it has none; None
        where there is no telling.
    """
    own = dict(backbone.named_parameters())
    name, _, clr, clr_pos = (prefix + name for name in NAMES)
    if 'pos_embed' not in own:
        return [], None
    grid = tuple(backbone.patch_resolution)
    own_cls_rows = _num_cls_rows(backbone)
    tries = _cls_rows(backbone, own, state_dict, prefix)
    if prefix + FOREIGN_POS_EMBED in state_dict:
        state_dict[name] = state_dict.pop(prefix + FOREIGN_POS_EMBED)
    pos = state_dict.get(name)
    joined = clr in state_dict and clr_pos not in state_dict
    num_clr = state_dict[clr].size(1) if joined else 0
    layout = _layout(pos, tries, num_clr, grid)
    if layout is None:
        return [], None
    num_cls, old, num_clr = layout
    cls_rows, patches, clr_rows = pos.split((num_cls, prod(old), num_clr), 1)
    if DIST in own and prefix + DIST not in state_dict:
        cls_rows = cls_rows.repeat(1, 2, 1)
    if joined:
        no_rows = torch.zeros_like(state_dict[clr])
        state_dict[clr_pos] = clr_rows if num_cls else no_rows
    if old != grid:
        patches = resample_abs_pos_embed(patches, grid, old, 0)
    if own_cls_rows:
        rows = F.pad(cls_rows, (0, 0, 0, own_cls_rows))[:, :own_cls_rows]
        patches = torch.cat((rows, patches), dim=1)
    state_dict[name] = patches
    resized = _changes(name, old, grid, own_cls_rows > 0 and not num_cls)
    return resized, cls_rows


def _add_to_tokens(
    backbone, rows: Tensor, state_dict: dict, prefix: str
) -> None:
    """Add positions to tokens that have none, in place."""
    tokens = backbone.may_have_position
    for token, row in zip(tokens, rows.unbind(1), strict=False):
        if prefix + token in state_dict:
            state_dict[prefix + token] = state_dict[prefix + token] + row


def _cls_rows(
    backbone, own: dict, state_dict: dict, prefix: str
) -> tuple[int, ...]:
    """Guess the rows before the patches in a state dict, likely first.

    They are those of CLS and the distillation token, if it has one. There
    may be none in a foreign file (DeiT III) and in one of mmpretrain's
    ``DeiT3``, known by its layer scale. As many rows as in a backbone without
    any for CLS, under its own name, are its own: 50 may be 5 x 10 patches.
    """
    rows = len(_prefix_of(backbone, own, state_dict, prefix))
    if not rows:
        return (0,)
    if 'cls_token' in own and not _num_cls_rows(backbone):
        pos = state_dict.get(f'{prefix}pos_embed')
        same = _is_rows(pos) and pos.size(1) == own['pos_embed'].size(1)
        return (0,) if same else (0, rows)
    marks = (FOREIGN_POS_EMBED, 'layers.0.attn.gamma1.weight')
    may_have_none = any(prefix + mark in state_dict for mark in marks)
    return (rows, 0) if may_have_none else (rows,)


def _changes(name: str, old: tuple, grid: tuple, no_cls: bool) -> list[str]:
    """Describe what was resized."""
    if old == grid and not no_cls:
        return []
    none = ' without CLS' if no_cls else ''
    (h, w), (new_h, new_w) = old, grid
    return [f'{name} from {h} x {w} patches{none} to {new_h} x {new_w}']


def _is_rows(pos) -> bool:
    return isinstance(pos, Tensor) and pos.dim() == 3


def _prefix_of(
    backbone, own: dict, state_dict: dict, prefix: str
) -> list[str]:
    """List tokens before the patches; backbones may lack CLS."""
    tokens = backbone.may_have_position
    known = {name for name in tokens if prefix + name in state_dict}
    known |= {'cls_token'} & own.keys()
    return [name for name in tokens if name in known]


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


def explain_rows(backbone, own: dict, state_dict: dict, prefix: str) -> str:
    """Explain a position embedding without a valid grid, for an error.

    Empty if the number of rows is not the problem.
    """
    pos = state_dict.get(f'{prefix}pos_embed')
    if not _is_rows(pos) or pos.size(1) == own['pos_embed'].size(1):
        return ''
    num_tokens = len(_prefix_of(backbone, own, state_dict, prefix))
    height, width = backbone.patch_resolution
    return (
        f' ({pos.size(1)} rows, {num_tokens} of them before the patches; the '
        f'rest matches neither a square grid nor {height} x {width}; set '
        "img_size to the image size of the file's model)"
    )


def _init_dist(backbone, state_dict: dict, prefix: str) -> list[str]:
    """Initialize a distillation token that is missing by CLS, in place.

    Returns:
        list[str]: The keys of what is new.
    """
    cls_token, dist = prefix + 'cls_token', prefix + DIST
    wanted = DIST in dict(backbone.named_parameters())
    if not wanted or dist in state_dict or cls_token not in state_dict:
        return []
    state_dict[dist] = state_dict[cls_token].clone()
    return [dist]


def _init_clr(
    backbone, state_dict: dict, prefix: str, cls_rows: Tensor | None
) -> list[str]:
    """Initialize CLR tokens by the CLS token of a state dict, in place.

    Nothing happens where the state dict has as many CLR tokens already.
    Their positions are those that the backbone has drawn, and zero where
    CLS has none. With ``clr_at_cls`` that of CLS is added, so that the drawn
    ones distinguish several.

    Returns:
        list[str]: The keys of what is new.
    """
    _, cls_token, clr, clr_pos = (prefix + name for name in NAMES)
    own = dict(backbone.named_parameters())
    if 'cache.clr' not in own or cls_token not in state_dict:
        return []
    num_clr = own['cache.clr'].size(1)
    if clr in state_dict and state_dict[clr].size(1) == num_clr:
        return []
    state_dict[clr] = state_dict[cls_token].repeat(1, num_clr, 1)
    pos = backbone.cache.clr_pos.detach()
    if cls_rows is not None and not cls_rows.size(1):
        pos = torch.zeros_like(pos)
    elif cls_rows is not None and backbone.cache.clr_at_cls:
        pos = pos + cls_rows[:, :1].to(pos)
    state_dict[clr_pos] = pos
    return [clr, clr_pos]
