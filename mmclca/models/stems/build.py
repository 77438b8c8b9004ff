# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from torch import nn

from mmclca.registry import MODELS
from mmclca.utils.known_names import did_you_mean


def build_stem(stem: dict, patch_size: tuple[int, int], **known) -> nn.Module:
    """Build what makes tokens of an image.

    Args:
        stem (dict): Config of a module from images (B, 3, H, W) to tokens
            (B, N, C) and their grid (h, w), with ``init_out_size``, the grid
            of ``img_size``, and ``stride``, height and width of a patch in
            pixels.
        patch_size (tuple[int, int]): That of the backbone.
        **known: ``img_size``, ``in_channels`` and ``embed_dims``, which the
            backbone fills in where the config does not say them.

    Raises:
        ValueError: If it is no config of a registered stem, or its patches
            are not of ``patch_size``.
    """
    kind = stem.get('type') if isinstance(stem, dict) else None
    if isinstance(kind, str) and MODELS.get(kind) is None:
        known = [f'mmclca.{name}' for name in MODELS.module_dict]
        raise ValueError(f'stem: no {kind!r}{did_you_mean(kind, known)}')
    if kind is None:
        raise ValueError(
            f'stem={stem!r} is no config with a type: give '
            "dict(type='mmclca.HMLPStem')"
        )
    stem = MODELS.build(stem, default_args=dict(known, patch_size=patch_size))
    stride = tuple(stem.stride)
    if stride != patch_size:
        raise ValueError(
            f'{type(stem).__name__} makes patches of {stride} px, '
            f'patch_size={patch_size} is not allowed: give patch_size={stride}'
        )
    return stem
