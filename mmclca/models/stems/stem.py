# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the stems of several convolutions have in common."""

from math import ceil

from mmcv.cnn.bricks.transformer import AdaptivePadding
from mmengine.model import BaseModule
from mmpretrain.models.utils import build_norm_layer, to_2tuple
from torch import Tensor, nn

SIDE = 16  # of a patch, in pixels


class Stem(BaseModule):
    """Tokens of patches of 16 x 16 pixels by a sequence of layers.

    An image of another size is padded with zeros at the right and at the
    bottom, as mmpretrain's ``PatchEmbed`` does it, where a stem does not say
    otherwise. Convolutions keep PyTorch's initialization.

    Args:
        projection (nn.Sequential): From images (B, 3, 16 h, 16 w) to patches
            (B, C, h, w).
        img_size (int | tuple[int, int]): Height and width of an image in
            pixels, for ``init_out_size``.
        patch_size (int | tuple[int, int]): Height and width of a patch in
            pixels: 16.
        init_cfg (dict, optional): As in ``BaseModule``. Defaults to None.

    Raises:
        ValueError: If ``patch_size`` is not 16.
    """

    stride = (SIDE, SIDE)

    def __init__(
        self,
        projection: nn.Sequential,
        img_size: int | tuple[int, int],
        patch_size: int | tuple[int, int],
        init_cfg: dict | None = None,
    ):
        super().__init__(init_cfg)
        if to_2tuple(patch_size) != self.stride:
            raise ValueError(
                f'{type(self).__name__} makes patches of {SIDE} x {SIDE} '
                f'pixels: patch_size={patch_size} is not allowed, give '
                f'patch_size={SIDE}'
            )
        self.init_out_size = tuple(
            ceil(pixels / SIDE) for pixels in to_2tuple(img_size)
        )
        self.padding = AdaptivePadding(SIDE, SIDE)
        self.projection = projection

    def forward(self, x: Tensor) -> tuple[Tensor, tuple[int, int]]:
        """Images (B, 3, H, W) to tokens (B, N, C) and their grid (h, w)."""
        x = self.projection(self.padding(x))
        return x.flatten(2).transpose(1, 2), tuple(x.shape[-2:])


def norm_of_maps(norm_cfg: dict, channels: int) -> nn.Module:
    """Build a norm of maps (B, C, h, w).

    Raises:
        ValueError: If it is the LayerNorm of tokens, which would normalize
            over the width of the map.
    """
    if norm_cfg['type'] == 'LN':
        raise ValueError(
            "norm_cfg=dict(type='LN') is for tokens (B, N, C): give a stem "
            "dict(type='LN2d', eps=1e-6), which is over the channels of a map"
        )
    return build_norm_layer(norm_cfg, channels)
