# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Positions and CLR tokens of a checkpoint, fitted to a backbone."""

from math import isqrt

import torch
from mmengine.logging import MMLogger
from timm.layers import resample_abs_pos_embed

from .checkpoint_error import CheckpointError


def fit_pos_embed(backbone, state_dict: dict, prefix: str) -> None:
    """Bring ``pos_embed`` of a state dict into the backbone's form, in place.

    Rows of CLR tokens (the CLCA authors keep them at the end) move to
    ``cache.clr_pos``; a CLS row of zeros is added where a model has no
    position for CLS (DeiT III); the grid is resized as timm does it.
    """
    name, clr, clr_pos = (
        f'{prefix}{key}' for key in ('pos_embed', 'cache.clr', 'cache.clr_pos')
    )
    if name not in state_dict:
        return
    pos = state_dict[name]
    num_clr = 0
    if clr in state_dict and clr_pos not in state_dict:
        num_clr = state_dict[clr].size(1)
    grid = backbone.patch_resolution
    has_cls, old = _layout(pos.size(1), num_clr, grid)
    if num_clr:
        rows = pos[:, -num_clr:] if has_cls else pos[:, :num_clr] * 0
        state_dict[clr_pos] = rows
    first = int(has_cls)
    patches = pos[:, first : first + old[0] * old[1]]
    if old != tuple(grid):
        MMLogger.get_current_instance().info(
            f'position embedding resized from {old} to {tuple(grid)} patches'
        )
        patches = resample_abs_pos_embed(patches, grid, old, 0)
    if backbone.with_cls_token:
        cls_row = pos[:, :1] if has_cls else pos[:, :1] * 0
        patches = torch.cat((cls_row, patches), dim=1)
    state_dict[name] = patches


def _layout(num_rows: int, num_clr: int, grid) -> tuple:
    """Whether CLS has a row, and the patch grid of the other rows."""
    num_patches = num_rows - 1 - num_clr
    if num_patches == grid[0] * grid[1]:
        return True, tuple(grid)
    if num_rows == grid[0] * grid[1]:
        return False, tuple(grid)
    for has_cls, patches in ((True, num_patches), (False, num_rows)):
        side = isqrt(max(patches, 0))
        if side and side * side == patches:
            return has_cls, (side, side)
    raise CheckpointError(
        f'pos_embed has {num_rows} rows: neither those of a grid of '
        f'{tuple(grid)} patches nor of a square one, so it cannot be resized; '
        'build the backbone with the img_size that it was trained with'
    )


def start_clr(backbone, state_dict: dict, prefix: str) -> None:
    """Start CLR tokens as copies of the CLS token of a state dict, in place.

    Nothing happens where the state dict has CLR tokens already. Their
    positions start at zero where CLS has none, else as they are drawn.
    """
    cls_token, pos, clr, clr_pos = (
        f'{prefix}{key}'
        for key in ('cls_token', 'pos_embed', 'cache.clr', 'cache.clr_pos')
    )
    num_clr = backbone.cache.num_tokens if backbone.cache else 0
    if not num_clr or clr in state_dict or cls_token not in state_dict:
        return
    state_dict[clr] = state_dict[cls_token].repeat(1, num_clr, 1)
    if pos in state_dict and not state_dict[pos][:, 0].any():
        state_dict[clr_pos] = torch.zeros_like(state_dict[clr])
