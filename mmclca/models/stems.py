# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Convolutional stems: patch embeddings with several convolutions."""

from itertools import pairwise
from math import ceil
from typing import Any

from mmcv.cnn.bricks.transformer import AdaptivePadding
from mmengine.model import BaseModule
from mmpretrain.models.utils import build_norm_layer, to_2tuple
from torch import Tensor, nn
from torch.nn.functional import unfold

from mmclca.errors import Error
from mmclca.registry import MODELS

BATCH_NORM = dict(type='BN')
SIDE = 16  # patch height and width in pixels


class Stem(BaseModule):
    """Base of stems for patches with 16 x 16 pixels.

    Images are zero-padded at the right and bottom to full patches, as in
    mmpretrain's ``PatchEmbed``, unless a subclass changes ``padder``.
    Convolutions keep PyTorch's initialization. A subclass defines
    ``sequence``, the layers from images (B, 3, 16 h, 16 w) to patches (B, C,
    h, w).

    Args:
        embed_dims (int): Embedding dimension C. Defaults to 768.
        img_size (int | tuple[int, int]): Image height and width in pixels, for
            ``init_out_size``. Defaults to 224.
        patch_size (int | tuple[int, int]): Patch height and width in pixels;
            only 16 is supported.
        in_channels (int): Image channels. Defaults to 3.
        norm_cfg (dict, optional): Config of the normalization layers. Defaults
            to BatchNorm.
        init_cfg (dict, optional): As in ``BaseModule``. Defaults to None.

    Raises:
        Error: If ``patch_size`` is not 16, or ``norm_cfg`` is LayerNorm
            for tokens.
    """

    stride = (SIDE, SIDE)
    padder = AdaptivePadding

    def __init__(
        self,
        embed_dims: int = 768,
        img_size: int | tuple[int, int] = 224,
        patch_size: int | tuple[int, int] = SIDE,
        in_channels: int = 3,
        norm_cfg: dict | None = BATCH_NORM,
        init_cfg: dict | None = None,
    ):
        super().__init__(init_cfg)
        if to_2tuple(patch_size) != self.stride:
            raise Error(
                f'{type(self).__name__} needs patch_size={SIDE}, found '
                f'{patch_size}'
            )
        height, width = to_2tuple(img_size)
        self.init_out_size = ceil(height / SIDE), ceil(width / SIDE)
        self.padding = self.padder(SIDE, SIDE)
        layers = self.sequence(in_channels, embed_dims, norm_cfg)
        self.projection = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> tuple[Tensor, tuple[int, int]]:
        """Map images (B, 3, H, W) to tokens (B, N, C) and the grid (h, w)."""
        x = self.projection(self.padding(x))
        height, width = x.shape[-2:]
        return x.flatten(2).transpose(1, 2), (height, width)


def norm_of_maps(norm_cfg: dict, channels: int) -> nn.Module:
    """Build a norm for maps (B, C, h, w).

    ``LN`` for tokens is refused: it would normalize over the map width.
    """
    if norm_cfg['type'] == 'LN':
        raise Error(
            "norm_cfg=dict(type='LN') is for tokens; use dict(type='LN2d', "
            'eps=1e-6) in a stem'
        )
    return build_norm_layer(norm_cfg, channels)


@MODELS.register_module()
class ConvStem(Stem):
    """Four 3 x 3 convolutions with stride 2, as in LeViT.

    The stem compared with :class:`HMLPStem` in table 7 of `Three things
    everyone should know about Vision Transformers
    <https://arxiv.org/abs/2203.09795>`_. The channels double from C / 8 to C.
    A norm follows each convolution, and GELU each except the last. The
    convolutions have no bias and overlap: a token depends on pixels in
    neighboring patches, so the stem is incompatible with masking. Images of
    any size are covered without padding to full patches. Without norms it is
    the stem of :class:`PatchConvNet`.

    Args:
        norm_cfg (dict, optional): As in :class:`HMLPStem`; None for no norm.
            Defaults to BatchNorm.
        **stem: Other arguments of :class:`Stem`.
    """

    padder = nn.Identity  # the convolutions pad enough

    def sequence(self, in_channels: int, embed_dims: int, norm_cfg) -> list:
        """Return the layers in order."""
        widths = (in_channels, *(embed_dims // part for part in (8, 4, 2, 1)))
        layers = []
        for in_dims, width in pairwise(widths):
            conv = nn.Conv2d(in_dims, width, 3, 2, padding=1, bias=False)
            if norm_cfg is not None:
                conv = nn.Sequential(conv, norm_of_maps(norm_cfg, width))
            layers += [conv, nn.GELU()]
        return layers[:-1]


@MODELS.register_module()
class HMLPStem(Stem):
    """Hierarchical MLP: patches with 4 x 4, 8 x 8, then 16 x 16 pixels.

    From `Three things everyone should know about Vision Transformers
    <https://arxiv.org/abs/2203.09795>`_, section 5 and figure 5. Kernel size
    equals stride, so a token depends on its own patch only. Masking patches
    before or after the stem is therefore equivalent: always with LayerNorm,
    and in evaluation with BatchNorm (in training, BatchNorm uses the
    statistics of all patches).

    ==========================  ==================
    convolution, stride         map, at 224 px
    ==========================  ==================
    4 x 4, norm, GELU           C / 4 x 56 x 56
    2 x 2, norm, GELU           C / 4 x 28 x 28
    2 x 2, norm                 C x 14 x 14
    ==========================  ==================

    Args:
        norm_cfg (dict): ``dict(type='BN')`` or ``dict(type='LN2d',
            eps=1e-6)``, the LayerNorm over channels at each position.
            Defaults to BatchNorm.
        **stem: Other arguments of :class:`Stem`.
    """

    def sequence(self, in_channels: int, embed_dims: int, norm_cfg) -> list:
        """Return the layers in order."""
        width = embed_dims // 4
        widths, layers = (in_channels, width, width, embed_dims), []
        for (in_dims, out_dims), side in zip(
            pairwise(widths), (4, 2, 2), strict=True
        ):
            conv = nn.Conv2d(in_dims, out_dims, side, stride=side)
            layers += [conv, norm_of_maps(norm_cfg, out_dims), nn.GELU()]
        return layers[:-1]

    def visible(self, x: Tensor, index: Tensor) -> Tensor:
        """Compute the tokens of selected patches only.

        The result equals gathering from ``forward``, except that in training
        BatchNorm sees the visible patches only.

        Args:
            x (Tensor): Images (B, 3, H, W).
            index (Tensor): Patch indices per image (B, K), row by row from 0.

        Returns:
            Tensor: Tokens (B, K, C).
        """
        patches = unfold(self.padding(x), SIDE, stride=SIDE)
        index = index[:, None].expand(-1, patches.size(1), -1)
        patches = patches.gather(2, index).unflatten(1, (-1, SIDE, SIDE))
        # the K patches form one image row, (B, 3, 16, 16 K)
        return self(patches.transpose(-1, -2).flatten(-2))[0]


def build_stem(
    vit: Any, stem: dict, patch_size: int | tuple, in_channels: int = 3
) -> nn.Module:
    """Build the patch embedding of a backbone from a config.

    The stem maps images (B, 3, H, W) to tokens (B, N, C) and their grid (h,
    w). It has ``init_out_size``, the grid for ``img_size``, and ``stride``,
    the patch height and width in pixels. The backbone's ``img_size`` and
    ``embed_dims`` are its defaults. A different patch size or grid is refused.
    """
    expected = to_2tuple(patch_size), tuple(vit.patch_resolution)
    sizes = dict(img_size=vit.img_size, embed_dims=vit.embed_dims)
    sizes.update(patch_size=expected[0], in_channels=in_channels)
    built = MODELS.build(stem, default_args=sizes)
    actual = tuple(built.stride), tuple(built.init_out_size)
    if actual != expected:
        raise Error(
            f'{type(built).__name__} has patches of {actual[0]} px in a grid '
            f'of {actual[1]}, but the backbone has {expected[0]} and '
            f'{expected[1]}; remove img_size from stem, and patch_cfg'
        )
    return built
