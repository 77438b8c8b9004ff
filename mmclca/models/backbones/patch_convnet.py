# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from math import ceil, prod
from typing import Literal

from mmcv.cnn.bricks import DropPath
from mmcv.cnn.bricks.transformer import PatchEmbed
from mmengine.model import BaseModule, ModuleList
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from mmpretrain.models.utils import (
    LayerScale,
    SELayer,
    build_norm_layer,
    resize_pos_embed,
    to_2tuple,
)
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice

from ..layers.attention_pool import LAYER_NORM, AttentionPool, AveragePool
from ..layers.deit_init import trunc_normal
from ..stems import SIDE, build_stem
from .base import ForeignWeights, settings_of

CONV_STEM = dict(type='mmclca.ConvStem', norm_cfg=None)
POOLINGS = ('attention', 'average')
WIDTHS = dict(s=384, b=768, l=1024)
DEPTHS = dict(s=(20, 36, 60, 120), b=(36, 60, 120), l=(60, 120))
NORMS = dict(LN='LN2d', BN='BN', SyncBN='SyncBN')  # token norm: map norm


class ColumnLayer(BaseModule):
    r"""Residual convolution layer at constant resolution.

    .. math::
        x' = x + \gamma \, f(\mathrm{norm}(x))

    where f is a 1 x 1 convolution, GELU, a depth-wise 3 x 3 convolution, GELU,
    squeeze-and-excitation with round(C / 4) channels, and a 1 x 1 convolution.
    Source: Touvron's thesis (2022), section 5.2.1; the depth-wise convolution
    and the squeeze channels follow the public code. Convolutions keep
    PyTorch's initialization. Only LayerNorm and BatchNorm are supported.
    """

    def __init__(
        self,
        embed_dims: int,
        norm_cfg: dict,
        layer_scale_init_value: float,
        drop_path_rate: float,
    ):
        super().__init__()
        norm_type = norm_cfg['type']
        check_choice(NORMS, norm_cfg=norm_type)
        norm_cfg = dict(norm_cfg, type=NORMS[norm_type])
        self.norm = build_norm_layer(norm_cfg, embed_dims)
        self.conv1 = nn.Conv2d(embed_dims, embed_dims, 1)
        self.depthwise = nn.Conv2d(
            embed_dims, embed_dims, 3, padding=1, groups=embed_dims
        )
        self.se = SELayer(embed_dims, squeeze_channels=round(embed_dims / 4))
        self.conv2 = nn.Conv2d(embed_dims, embed_dims, 1)
        self.gamma = nn.Identity()
        if layer_scale_init_value:
            self.gamma = LayerScale(
                embed_dims,
                layer_scale_init_value,
                data_format='channels_first',
            )
        self.gelu = nn.GELU()
        self.drop_path = DropPath(drop_path_rate)
        # restore PyTorch's initialization, which mmcv replaces
        for squeeze in (self.se.conv1, self.se.conv2):
            squeeze.conv.reset_parameters()
        self.se.is_init = True

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, C, H, W) to the same shape."""
        update = self.gelu(self.conv1(self.norm(x)))
        update = self.se(self.gelu(self.depthwise(update)))
        return x + self.drop_path(self.gamma(self.conv2(update)))


@MODELS.register_module()
class PatchConvNet(ForeignWeights, BaseBackbone):
    """A convolutional column at constant resolution with attention pooling.

    `Augmenting Convolutional networks with attention-based aggregation
    <https://arxiv.org/abs/2112.13692>`_; Touvron's thesis (2022), chapter 5.
    A convolutional stem, several :class:`ColumnLayer` and an
    :class:`AttentionPool`, whose softmax weights show the importance of each
    patch. Images may have any size and aspect ratio, independent of
    ``img_size``; n pixels are covered by ceil(n / 16) patches.

    Released checkpoints are renamed on load. Weights with one query can be
    loaded with ``multiclass=K``: each class starts with a copy.

    Args:
        arch (str | dict): 's20', 's36', 's60', 's120', 'b36', 'b60', 'b120',
            'l60' or 'l120', or ``embed_dims`` and ``num_layers``. Defaults
            to 's60'.
        img_size (int | tuple[int, int]): Image height and width in pixels;
            affects only explicit positions. Defaults to 224.
        multiclass (bool | int): See :class:`AttentionPool`. Defaults to
            False.
        num_heads (int): Heads of the pooling. Defaults to 1.
        class_mlp_ratio (float): FFN expansion of the pooling. Defaults to 3.
        qkv_bias (bool): Whether the pooling's queries, keys and values have a
            bias. Defaults to True.
        norm_cfg (dict): Config of all norms; BatchNorm applies to the column
            only, and the pooling uses LayerNorm. Defaults to LayerNorm with
            eps 1e-6.
        layer_scale_init_value (float, optional): Initial value of every
            LayerScale; 0: none. Defaults to None: 1e-4 up to 60 layers with
            384 channels, otherwise 1e-6, as in the public code.
        drop_path_rate (float): Stochastic depth rate of every column layer.
            Defaults to 0.
        in_channels (int): Image channels. Defaults to 3.
        stem (dict, optional): Config of a patch embedding with 16 x 16 pixels
            per patch, see :class:`TokenReductionViT`; None for one linear
            layer. Defaults to four 3 x 3 convolutions with stride 2.
        pooling (str): 'attention', or 'average' followed by a norm. Defaults
            to 'attention'.
        with_pos (bool): Whether patches get learned positions after the
            stem, resized for images with another size. Defaults to False.
        frozen_stages (int): Number of first column layers to freeze and keep
            in eval mode, with the stem; -1 or 0: none. Defaults to -1.
        init_cfg (dict, optional): Initialization config. Defaults to None:
            truncated normal with standard deviation 0.02 for linear layers
            and queries, PyTorch's default for convolutions.

    Raises:
        Error: If ``arch`` is unknown or lacks a size, ``multiclass`` is
            not a number of classes or is combined with 'average', ``pooling``
            is unknown, or the stem has another patch size.
    """

    arch_zoo = {
        f'{size}{depth}': dict(embed_dims=WIDTHS[size], num_layers=depth)
        for size, depths in DEPTHS.items()
        for depth in depths
    }
    shaped_by = 'arch, multiclass, pooling and stem'
    why_not_reducible = 'its convolutions need the complete grid of patches'
    stride = (SIDE, SIDE)  # patch height and width in pixels

    def __init__(
        self,
        arch: str | dict = 's60',
        img_size: int | tuple[int, int] = 224,
        multiclass: bool | int = False,
        num_heads: int = 1,
        class_mlp_ratio: float = 3.0,
        qkv_bias: bool = True,
        norm_cfg: dict = LAYER_NORM,
        layer_scale_init_value: float | None = None,
        drop_path_rate: float = 0.0,
        in_channels: int = 3,
        *,
        stem: dict | None = CONV_STEM,
        pooling: Literal['attention', 'average'] = 'attention',
        with_pos: bool = False,
        frozen_stages: int = -1,
        init_cfg: dict | None = None,
    ):
        super().__init__(init_cfg)
        arch = settings_of(arch, self.arch_zoo, ('embed_dims', 'num_layers'))
        dims, num_layers = arch['embed_dims'], arch['num_layers']
        self.embed_dims, self.img_size = dims, to_2tuple(img_size)
        self.frozen_stages = frozen_stages
        self.patch_resolution = tuple(ceil(n / SIDE) for n in self.img_size)
        if stem is None:
            self.patch_embed = PatchEmbed(
                in_channels, dims, kernel_size=SIDE, stride=SIDE
            )
        else:
            self.patch_embed = build_stem(self, stem, SIDE, in_channels)
        self.pos_embed = None
        if with_pos:
            self.pos_embed = nn.Parameter(
                trunc_normal(1, prod(self.patch_resolution), dims),
                requires_grad=frozen_stages <= 0,
            )
        scale = layer_scale_init_value
        if scale is None:
            scale = 1e-4 if dims <= 384 and num_layers <= 60 else 1e-6
        self.layers = ModuleList(
            ColumnLayer(dims, norm_cfg, scale, drop_path_rate)
            for _ in range(num_layers)
        )
        check_choice(POOLINGS, pooling=pooling)
        if multiclass and pooling == 'average':
            raise Error(
                f'multiclass={multiclass} needs one query per class, but '
                "pooling='average' has no queries; set pooling='attention'"
            )
        norm_cfg = LAYER_NORM if 'BN' in norm_cfg['type'] else norm_cfg
        if pooling == 'average':
            self.pool = AveragePool(dims, norm_cfg)
        else:
            self.pool = AttentionPool(
                dims,
                num_heads=num_heads,
                multiclass=multiclass,
                mlp_ratio=class_mlp_ratio,
                qkv_bias=qkv_bias,
                norm_cfg=norm_cfg,
                layer_scale_init_value=scale,
            )
        if frozen_stages > 0:
            self._freeze_stages()
        self.rename_on_load()

    def extract_maps(self, x: Tensor) -> Tensor:
        """Map images (B, 3, H, W) to the column output (B, C, h, w)."""
        x, hw = self.patch_embed(x)
        if self.pos_embed is not None:
            x = x + resize_pos_embed(
                self.pos_embed, self.patch_resolution, hw, num_extra_tokens=0
            )
        x = x.mT.unflatten(2, hw)
        for layer in self.layers:
            x = layer(x)
        return x

    def forward(self, x: Tensor) -> tuple[Tensor]:
        """Map images (B, 3, H, W) to vectors (B, C) or (B, K, C)."""
        return self.pool((self.extract_maps(x),))

    def class_attention(self, images: Tensor) -> list[Tensor]:
        """Compute the attention of each query to the patches.

        Returns:
            list[Tensor]: See :meth:`AttentionPool.class_attention`.
        """
        return self.pool.class_attention((self.extract_maps(images),))

    def _freeze_stages(self) -> None:
        for part in (self.patch_embed, *self.layers[: self.frozen_stages]):
            part.eval().requires_grad_(False)
