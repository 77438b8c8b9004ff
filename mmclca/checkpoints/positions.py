# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Positions and CLR tokens of a checkpoint, fitted to a backbone."""

from math import isqrt

import torch
from mmengine.logging import MMLogger
from timm.layers import resample_abs_pos_embed
from torch import Tensor

# the name of positions from a foreign file, in which CLS may have none
FOREIGN_POS_EMBED = 'foreign_pos_embed'


def fit_pos_embed(backbone, state_dict: dict, prefix: str) -> bool:
    """Bring ``pos_embed`` of a state dict into the backbone's form, in place.

    Rows of CLR tokens (the CLCA authors keep them at the end) move to
    ``cache.clr_pos``; a CLS row of zeros is added where a model has no
    position for CLS (DeiT III), or is added to the CLS token where the
    backbone has none; the grid is resized as timm does it. Rows
    that are no grid are left as they are, see :func:`explain_rows`.

    Returns:
        bool: Whether CLS has a position in the state dict.
    """
    name, cls_token, clr, clr_pos = _keys(prefix)
    cls_rows = _cls_rows(backbone, state_dict, prefix)
    foreign = prefix + FOREIGN_POS_EMBED
    if foreign in state_dict:
        state_dict[name] = state_dict.pop(foreign)
    pos = state_dict.get(name)
    if not isinstance(pos, Tensor) or pos.dim() != 3:
        return True
    joined = clr in state_dict and clr_pos not in state_dict
    num_clr = state_dict[clr].size(1) if joined else 0
    grid = tuple(backbone.patch_resolution)
    layout = _layout(pos.size(1), cls_rows, num_clr, grid)
    if layout is None:
        return True
    num_cls, old, num_clr = layout
    cls_row, patches, clr_rows = pos.split(
        (num_cls, old[0] * old[1], num_clr), dim=1
    )
    if joined:
        no_rows = torch.zeros_like(state_dict[clr])
        state_dict[clr_pos] = clr_rows if num_cls else no_rows
    logger = MMLogger.get_current_instance()
    if 1 in cls_rows and not num_cls:
        logger.info(f'positions of {old} patches and none for CLS')
    if old != grid:
        logger.info(f'position embedding resized from {old} to {grid} patches')
        patches = resample_abs_pos_embed(patches, grid, old, 0)
    if backbone.with_cls_token and backbone.with_cls_pos:
        cls_row = cls_row if num_cls else torch.zeros_like(pos[:, :1])
        patches = torch.cat((cls_row, patches), dim=1)
    elif backbone.with_cls_token and num_cls:
        state_dict[cls_token] = state_dict[cls_token] + cls_row
    state_dict[name] = patches
    return num_cls > 0


def _keys(prefix: str) -> list[str]:
    names = ('pos_embed', 'cls_token', 'cache.clr', 'cache.clr_pos')
    return [prefix + name for name in names]


def _cls_rows(backbone, state_dict: dict, prefix: str) -> tuple[int, ...]:
    """The numbers of rows that CLS may have in a state dict, likely first.

    It may have none in a foreign file (DeiT III) and in one of mmpretrain's
    ``DeiT3``, known by its layer scale.
    """
    if not _with_cls(backbone, state_dict, prefix):
        return (0,)
    if not backbone.with_cls_pos:
        return (0, 1)
    may_lack = (FOREIGN_POS_EMBED, 'layers.0.attn.gamma1.weight')
    lacks = any(prefix + name in state_dict for name in may_lack)
    return (1, 0) if lacks else (1,)


def _with_cls(backbone, state_dict: dict, prefix: str) -> bool:
    return backbone.with_cls_token or f'{prefix}cls_token' in state_dict


def _layout(
    num_rows: int, cls_rows: tuple[int, ...], num_clr: int, grid: tuple
):
    """Rows of CLS, grid of patches, rows of CLR tokens; None if no grid.

    The backbone's own grid goes before a square one, but where it is a
    rectangle, CLS and a square go before a rectangle without CLS: 50 rows
    are 1 + 7 x 7 rather than 5 x 10.
    """
    tries = [(num_cls, own) for own in (True, False) for num_cls in cls_rows]
    if grid[0] != grid[1]:
        tries = sorted(tries, reverse=True)
    for num_cls, own in tries:
        clr_rows = num_clr if num_cls else 0
        num_patches = max(num_rows - num_cls - clr_rows, 0)
        old = grid if own else (isqrt(num_patches),) * 2
        if num_patches and old[0] * old[1] == num_patches:
            return num_cls, old, clr_rows
    return None


def explain_rows(backbone, state_dict: dict, prefix: str) -> str:
    """What the rows of positions that are no grid could be.

    Args:
        backbone (TokenReductionViT): The backbone that is to be loaded.
        state_dict (dict): With the names of the backbone, after
            :func:`fit_pos_embed`.
        prefix (str): What the names begin with.

    Returns:
        str: The end of an error message; empty where the number of rows is
        not what is wrong.
    """
    pos = state_dict.get(f'{prefix}pos_embed')
    num_rows = backbone.pos_embed.size(1)
    if not isinstance(pos, Tensor) or pos.dim() != 3:
        return ''
    if pos.size(1) == num_rows:
        return ''
    with_cls = _with_cls(backbone, state_dict, prefix)
    patches = pos.size(1) - with_cls
    sides = [n for n in range(1, isqrt(patches) + 1) if patches % n == 0]
    grids = ', '.join(f'{n} x {patches // n}' for n in sides)
    height, width = backbone.patch_resolution
    return (
        f' ({pos.size(1)} rows, which could be {"CLS and " * with_cls}'
        f'{patches} patches: {grids}, either side first. Only a square and '
        f'the grid of this backbone, {height} x {width}, are told from the '
        'number of rows: set img_size to that of the model in the file)'
    )


def start_clr(
    backbone, state_dict: dict, prefix: str, with_pos: bool = True
) -> None:
    """Start CLR tokens as copies of the CLS token of a state dict, in place.

    Nothing happens where the state dict has as many CLR tokens already.
    With ``clr_at_cls`` their positions are that of CLS, the backbone's drawn
    ones added to tell several apart.

    Args:
        backbone (TokenReductionViT): The backbone that is to be loaded.
        state_dict (dict): With the names of the backbone.
        prefix (str): What the names begin with.
        with_pos (bool): Whether the positions of CLR tokens start as the
            backbone drew them, else at zero. Defaults to True.
    """
    pos_embed, cls_token, clr, clr_pos = _keys(prefix)
    num_clr = backbone.cache.num_tokens if backbone.cache else 0
    has_clr = clr in state_dict and state_dict[clr].size(1) == num_clr
    if not num_clr or has_clr or cls_token not in state_dict:
        return
    MMLogger.get_current_instance().info(
        f'{num_clr} CLR tokens start as copies of the CLS token'
    )
    state_dict[clr] = state_dict[cls_token].repeat(1, num_clr, 1)
    pos = backbone.cache.clr_pos.detach()
    if backbone.cache.clr_at_cls and pos_embed in state_dict:
        pos = pos + state_dict[pos_embed][:, :1].to(pos)
    state_dict[clr_pos] = pos if with_pos else torch.zeros_like(pos)
