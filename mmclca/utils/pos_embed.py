# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Positions and CLR tokens of a checkpoint, fitted to a backbone."""

from math import isqrt

import torch
from mmengine.logging import MMLogger
from timm.layers import resample_abs_pos_embed
from torch import Tensor


def fit_pos_embed(backbone, state_dict: dict, prefix: str) -> bool:
    """Bring ``pos_embed`` of a state dict into the backbone's form, in place.

    Rows of CLR tokens (the CLCA authors keep them at the end) move to
    ``cache.clr_pos``; a CLS row of zeros is added where a model has no
    position for CLS (DeiT III); the grid is resized as timm does it. Rows
    that are no grid are left as they are.

    Returns:
        bool: Whether CLS has a position in the state dict.
    """
    name, cls_token, clr, clr_pos = _keys(prefix)
    pos = state_dict.get(name)
    if not isinstance(pos, Tensor) or pos.dim() != 3:
        return True
    joined = clr in state_dict and clr_pos not in state_dict
    num_clr = state_dict[clr].size(1) if joined else 0
    with_cls = backbone.with_cls_token or cls_token in state_dict
    grid = tuple(backbone.patch_resolution)
    layout = _layout(pos.size(1), with_cls, num_clr, grid)
    if layout is None:
        return True
    num_cls, old, num_clr = layout
    cls_row, patches, clr_rows = pos.split(
        (num_cls, old[0] * old[1], num_clr), dim=1
    )
    if joined:
        no_rows = torch.zeros_like(state_dict[clr])
        state_dict[clr_pos] = clr_rows if num_cls else no_rows
    if old != grid:
        MMLogger.get_current_instance().info(
            f'position embedding resized from {old} to {grid} patches'
        )
        patches = resample_abs_pos_embed(patches, grid, old, 0)
    if backbone.with_cls_token:
        cls_row = cls_row if num_cls else torch.zeros_like(pos[:, :1])
        patches = torch.cat((cls_row, patches), dim=1)
    state_dict[name] = patches
    return num_cls > 0


def _keys(prefix: str) -> list[str]:
    names = ('pos_embed', 'cls_token', 'cache.clr', 'cache.clr_pos')
    return [prefix + name for name in names]


def _layout(num_rows: int, with_cls: bool, num_clr: int, grid: tuple):
    """Rows of CLS, grid of patches, rows of CLR tokens; None if no grid.

    A grid of the backbone's own size goes before a square one.
    """
    layouts = [(1, num_clr)] if with_cls else []
    for num_cls, num_clr in (*layouts, (0, 0)):
        num_patches = max(num_rows - num_cls - num_clr, 0)
        side = isqrt(num_patches)
        for old in (grid, (side, side)):
            if num_patches and old[0] * old[1] == num_patches:
                return num_cls, old, num_clr
    return None


def start_clr(
    backbone, state_dict: dict, prefix: str, with_pos: bool = True
) -> None:
    """Start CLR tokens as copies of the CLS token of a state dict, in place.

    Nothing happens where the state dict has as many CLR tokens already.

    Args:
        backbone (TokenReductionViT): The backbone that is to be loaded.
        state_dict (dict): With the names of the backbone.
        prefix (str): What the names begin with.
        with_pos (bool): Whether the positions of CLR tokens start as the
            backbone drew them, else at zero. Defaults to True.
    """
    _, cls_token, clr, clr_pos = _keys(prefix)
    num_clr = backbone.cache.num_tokens if backbone.cache else 0
    has_clr = clr in state_dict and state_dict[clr].size(1) == num_clr
    if not num_clr or has_clr or cls_token not in state_dict:
        return
    MMLogger.get_current_instance().info(
        f'{num_clr} CLR tokens start as copies of the CLS token'
    )
    state_dict[clr] = state_dict[cls_token].repeat(1, num_clr, 1)
    pos = backbone.cache.clr_pos.detach()
    state_dict[clr_pos] = pos if with_pos else torch.zeros_like(pos)
