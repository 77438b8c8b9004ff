# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from math import prod

import torch
from mmcv.cnn.bricks.transformer import PatchEmbed
from mmengine.model import ModuleList
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from mmpretrain.models.backbones.vision_transformer import (
    TransformerEncoderLayer,
)
from mmpretrain.models.utils import (
    build_norm_layer,
    resize_pos_embed,
    to_2tuple,
)
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_integer

from ..layers.class_attention import ClassLayer, ClassLayers
from ..layers.deit_init import scale_of_depth, trunc_normal
from ..layers.talking_heads import TalkingHeadsLayer
from ..reduction.reducers import TokenReducer
from ..reduction.tokens import Tokens
from .base import settings_of
from .reducible import Reducible
from .token_reduction_vit import ViTEmbedding

# embedding dimension and available depths
SIZES = dict(
    xxs=(192, 24, 36),
    xs=(288, 24, 36),
    s=(384, 24, 36, 48),
    m=(768, 24, 36, 48),
    b=(768, 12),
)


@MODELS.register_module()
class CaiT(Reducible, BaseBackbone):
    """Class-attention in image transformers.

    Patch layers apply talking-heads self-attention to the patches. Then, in
    class layers, CLS attends to the patches, which do not change any more. The
    patch layers support reducers without CLS attention. Released checkpoints
    are renamed on load. The output is a tuple with normalized CLS, (B, C).

    Source: Touvron's thesis (2022), sections 3.5 to 3.7; `Going deeper with
    Image Transformers <https://arxiv.org/abs/2103.17239>`_.

    Args:
        arch (str | dict): A size in the paper, 'xxs24' to 'm48' and 'b12', or
            a dict with ``embed_dims``, ``num_layers`` (patch layers),
            ``num_heads`` and ``feedforward_channels``. Defaults to 'xxs24'.
        img_size (int | tuple): Image height and width in pixels. Positions are
            resized for other images. Defaults to 224.
        patch_size (int | tuple): Patch height and width in pixels. Defaults to
            16.
        num_class_layers (int, optional): Number of class layers. Defaults to
            None: 2, or 0 with ``cls_at``.
        class_mlp_ratio (float): Hidden channels of their FFN, as a multiple of
            ``embed_dims``. Defaults to 4.
        qkv_bias (bool): Whether queries, keys and values have a bias.
            Defaults to True.
        norm_cfg (dict): Config of all norms. Defaults to
            ``dict(type='LN', eps=1e-6)``.
        layer_scale_init_value (float, optional): Initial value of LayerScale
            in all layers; 0: none. Defaults to None, :func:`scale_of_depth`.
        drop_path_rate (float): Stochastic depth rate of every patch layer;
            0 in class layers. Defaults to 0.
        reducer (dict, optional): Config of a :class:`TokenReducer`.
            Defaults to None.
        reduce_at (Sequence[int] | int): Patch layers, from 0, with a
            reduction. Defaults to ().
        cache (dict, optional): Config of a :class:`CrossLayerCache` with
            ``num_tokens=0``. Defaults to None.
        in_channels (int): Image channels. Defaults to 3.
        talking_heads (bool): Whether to mix the heads of patch layers.
            Defaults to True.
        cls_at (int, optional): Patch layer, from 0, at which CLS joins the
            self-attention: the study in table 3.13. Defaults to None, after
            all patch layers.
        with_cp (bool): Whether to recompute activations in the backward pass
            to save memory. Defaults to False.
        init_cfg (dict, optional): Defaults to a :class:`DeiTInit`.

    Raises:
        Error: If ``arch`` is unknown or lacks a size, the number of heads
            does not divide the channels, CLS would attend to nothing,
            ``cls_at`` is not a layer, or class attention does not support the
            reduction.
    """

    may_have_position = ()
    layer_lists = ('layers', 'class_layers')
    shaped_by = 'arch, img_size, patch_size and num_class_layers'
    has_cls = True
    stride = ViTEmbedding.stride
    ranks_by_cls = False  # mixed heads can have negative weights
    arch_zoo = {
        f'{name}{depth}': dict(
            embed_dims=embed_dims,
            num_layers=depth,
            num_heads=embed_dims // 48,
            feedforward_channels=4 * embed_dims,
        )
        for name, (embed_dims, *depths) in SIZES.items()
        for depth in depths
    }

    def __init__(
        self,
        arch: str | dict = 'xxs24',
        img_size: int | tuple = 224,
        patch_size: int | tuple = 16,
        num_class_layers: int | None = None,
        class_mlp_ratio: float = 4.0,
        qkv_bias: bool = True,
        norm_cfg: dict = dict(type='LN', eps=1e-6),
        layer_scale_init_value: float | None = None,
        drop_path_rate: float = 0.0,
        reducer: dict | None = None,
        reduce_at: Sequence[int] | int = (),
        cache: dict | None = None,
        *,
        in_channels: int = 3,
        talking_heads: bool = True,
        cls_at: int | None = None,
        with_cp: bool = False,
        init_cfg: dict | None = dict(type='mmclca.DeiTInit'),
    ):
        super().__init__(init_cfg)
        sizes = settings_of(arch, self.arch_zoo)
        dims, num_layers = sizes['embed_dims'], sizes['num_layers']
        if num_class_layers is None:
            num_class_layers = 2 if cls_at is None else 0
        if cls_at is None:  # otherwise CLS would attend to nothing
            check_integer(num_class_layers=num_class_layers)
        else:
            check_integer(minimum=0, maximum=num_layers - 1, cls_at=cls_at)
        if layer_scale_init_value is None:
            layer_scale_init_value = scale_of_depth(num_layers)
        self.embed_dims, self.cls_at, self.with_cp = dims, cls_at, with_cp
        self.img_size = to_2tuple(img_size)
        self.out_indices = (num_layers - 1,)
        self.num_prefix = int(cls_at == 0)
        self.patch_embed = PatchEmbed(
            in_channels,
            dims,
            kernel_size=patch_size,
            stride=patch_size,
            input_size=self.img_size,
        )
        self.patch_resolution = self.patch_embed.init_out_size
        positions = trunc_normal(1, prod(self.patch_resolution), dims)
        self.pos_embed = nn.Parameter(positions)
        self.cls_token = nn.Parameter(trunc_normal(1, 1, dims))
        shared = dict(
            embed_dims=dims,
            num_heads=sizes['num_heads'],
            qkv_bias=qkv_bias,
            norm_cfg=norm_cfg,
            layer_scale_init_value=layer_scale_init_value,
        )
        layer_class = (
            TalkingHeadsLayer if talking_heads else TransformerEncoderLayer
        )
        self.layers = ModuleList(
            layer_class(
                feedforward_channels=sizes['feedforward_channels'],
                drop_path_rate=drop_path_rate,
                **shared,
            )
            for _ in range(num_layers)
        )
        hidden = int(dims * class_mlp_ratio)
        self.class_layers = ClassLayers(
            ClassLayer(feedforward_channels=hidden, **shared)
            for _ in range(num_class_layers)
        )
        self.ln1 = build_norm_layer(norm_cfg, dims)
        self.set_reduction(reducer, reduce_at, cache)

    def embed(self, x: Tensor) -> tuple[Tokens, tuple[int, int]]:
        """See :class:`Reducible`."""
        x, hw = self.patch_embed(x)
        # otherwise every layer would copy the transposed convolution output
        x = x.contiguous() + resize_pos_embed(
            self.pos_embed, self.patch_resolution, hw, num_extra_tokens=0
        )
        tokens = Tokens(x, num_prefix=0, num_patches=hw[0] * hw[1])
        if self.num_prefix:
            tokens = self.prepend_cls(tokens)
        if self.cache is not None:
            tokens = self.cache.start(tokens)
        return tokens, hw

    @property
    def why_no_cls(self) -> str:
        """See :class:`Reducible`."""
        if self.num_prefix:
            return 'CaiT mixes the heads of CLS, so they do not score patches'
        return 'CaiT adds CLS after the layers that reduce tokens'

    def before_layer(self, i: int, tokens: Tokens) -> Tokens:
        """See :class:`Reducible`; prepends CLS at ``cls_at``."""
        late = i == self.cls_at and not tokens.num_prefix
        return self.prepend_cls(tokens) if late else tokens

    def prepend_cls(self, tokens: Tokens) -> Tokens:
        """Insert CLS before the patches."""
        x = torch.cat((self.get_cls(tokens), tokens.features), dim=1)
        return tokens.replace(features=x, num_prefix=1)

    def get_cls(self, tokens: Tokens) -> Tensor:
        """Return CLS (B, 1, C) from the tokens, or its initial value."""
        if tokens.num_prefix:
            return tokens.features[:, :1]
        return self.cls_token.expand(tokens.features.size(0), -1, -1)

    def format_tokens(self, tokens: Tokens, hw: tuple[int, int]) -> Tensor:
        """See :class:`Reducible`; normalized CLS after the class layers."""
        cls = self.class_layers(
            self.get_cls(tokens), tokens.after_prefix, self._key_bias(tokens)
        )
        return self.ln1(cls)[:, 0]

    def _key_bias(self, tokens: Tokens) -> Tensor | None:
        """Return the key bias of the tokens after the prefix."""
        key_bias = self.reducer.key_bias(tokens)
        if key_bias is None:
            return None
        return key_bias[..., tokens.num_prefix :]

    def _class_weights(self, tokens: Tokens) -> list[Tensor]:
        """Compute the CLS attention of each class layer to final tokens."""
        return self.class_layers.weights(
            self.get_cls(tokens), tokens.after_prefix, self._key_bias(tokens)
        )

    def class_attention(self, x: Tensor) -> list[Tensor]:
        """Compute the CLS attention of each class layer.

        Args:
            x (Tensor): Images (B, 3, H, W).

        Returns:
            list[Tensor]: Weights (B, H, 1, 1 + N) for CLS itself and the N
            remaining tokens (all patches without a reduction).
        """
        _, tokens = self.forward_tokens(x)
        return self._class_weights(tokens)

    def last_cls_attention(
        self, images: Tensor, entered: Tokens
    ) -> tuple[Tensor, Tokens]:
        """See :class:`Reducible`; uses the last class layer, if any.

        Class layers attend to the final tokens of ``images``, so ``entered``
        only matters without class layers.
        """
        if not len(self.class_layers):
            return super().last_cls_attention(images, entered)
        _, tokens = self.forward_tokens(images)
        weights = self._class_weights(tokens)[-1]
        first = 1 - tokens.num_prefix  # skip CLS unless it is in ``tokens``
        return weights[:, :, 0, first:].float().mean(dim=1), tokens

    def check_reducer(self, reducer: TokenReducer) -> None:
        """See :class:`Reducible`; refuses masking and a late CLS token."""
        super().check_reducer(reducer)
        reducer_class = type(reducer)
        if reducer_class.softmax is not TokenReducer.softmax:
            raise Error(
                f'{reducer_class.__name__} masks tokens in training, which '
                'CaiT does not support; use another reducer, such as ToMe'
            )
        if self.cls_at and self.reduce_at:
            raise Error(
                f'cls_at={self.cls_at} with reduce_at={self.reduce_at} is not '
                'supported; set cls_at to 0 or None'
            )

    def check_cla(self) -> None:
        """See :class:`Reducible`; always refused."""
        raise Error(
            'CLAHead needs CLS from several layers, but CaiT has CLS only '
            'from the last layer; use LinearClsHead'
        )
