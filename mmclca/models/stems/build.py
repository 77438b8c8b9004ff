# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from torch import nn

from mmclca.registry import MODELS


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
        ValueError: If its patches are not of ``patch_size``.
    """
    stem = MODELS.build(stem, default_args=dict(known, patch_size=patch_size))
    stride = tuple(stem.stride)
    if stride != patch_size:
        raise ValueError(
            f'{type(stem).__name__} makes patches of {stride} px, '
            f'patch_size={patch_size} is not allowed: give patch_size={stride}'
        )
    return stem
