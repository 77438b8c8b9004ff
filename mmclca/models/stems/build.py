# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from torch import nn

from mmclca.registry import MODELS
from mmclca.utils.known_names import did_you_mean


def build_stem(
    stem: dict,
    patch_size: tuple[int, int],
    patch_resolution: tuple[int, int],
    **sizes,
) -> nn.Module:
    """Build what makes tokens of an image.

    Args:
        stem (dict): Config of a module from images (B, 3, H, W) to tokens
            (B, N, C) and their grid (h, w), with ``init_out_size``, the grid
            of ``img_size``, and ``stride``, height and width of a patch in
            pixels.
        patch_size (tuple[int, int]): That of the backbone.
        patch_resolution (tuple[int, int]): Its grid of patches.
        **sizes: ``img_size``, ``in_channels`` and ``embed_dims``, which the
            backbone fills in where the config does not say them.

    Raises:
        ValueError: If it is no config of a registered stem, or its patches
            are not of ``patch_size`` or no such grid.
    """
    _check_type(stem)
    stem = MODELS.build(stem, default_args=dict(sizes, patch_size=patch_size))
    name, stride = type(stem).__name__, tuple(stem.stride)
    if stride != patch_size:
        raise ValueError(
            f'{name} makes patches of {stride} px, '
            f'patch_size={patch_size} is not allowed: give patch_size={stride}'
        )
    grid = tuple(stem.init_out_size)
    if grid != patch_resolution:
        raise ValueError(
            f'{name} makes {grid} patches, the backbone has positions for '
            f'{patch_resolution}: leave out img_size in stem, and patch_cfg'
        )
    return stem


def _check_type(stem: dict) -> None:
    kind = stem.get('type') if isinstance(stem, dict) else None
    if kind is None:
        raise ValueError(
            f'stem={stem!r} is no config with a type: give '
            "dict(type='mmclca.HMLPStem')"
        )
    if isinstance(kind, str) and MODELS.get(kind) is None:
        known = [f'mmclca.{name}' for name in MODELS.module_dict]
        raise ValueError(f'stem: no {kind!r}{did_you_mean(kind, known)}')
