# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Class attention: few queries attend to patches, which do not change."""

import torch
from mmcv.cnn.bricks.transformer import FFN
from mmengine.model import ModuleList
from mmpretrain.models.utils import LayerScale, build_norm_layer
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention

from mmclca.errors import Error
from mmclca.utils.messages import check_integer

from ..reduction.attention import attention_logits


def check_heads(embed_dims: int, num_heads: int) -> None:
    """Refuse a number of heads that does not divide the channels."""
    check_integer(num_heads=num_heads)
    if embed_dims % num_heads:
        raise Error(
            f'embed_dims={embed_dims} is not divisible by '
            f'num_heads={num_heads}; use a divisor'
        )


class ClassAttention(nn.Module):
    """Attention from K queries to N keys, O(KN).

    Source: Touvron's thesis (2022), section 3.6. With one query it equals the
    CLS row of self-attention with the same weights.
    """

    def __init__(self, embed_dims: int, num_heads: int, qkv_bias: bool = True):
        super().__init__()
        check_heads(embed_dims, num_heads)
        self.num_heads = num_heads
        self.q = nn.Linear(embed_dims, embed_dims, bias=qkv_bias)
        self.k = nn.Linear(embed_dims, embed_dims, bias=qkv_bias)
        self.v = nn.Linear(embed_dims, embed_dims, bias=qkv_bias)
        self.proj = nn.Linear(embed_dims, embed_dims)

    def forward(
        self, queries: Tensor, keys: Tensor, key_bias: Tensor | None = None
    ) -> Tensor:
        """Attend from queries (B, K, C) to keys (B, N, C), both normalized.

        The values come from the keys, too. ``key_bias`` (B, 1, 1, N) is added
        to the logits of each key. Returns (B, K, C).
        """
        q, k, v = self.q(queries), self.k(keys), self.v(keys)
        q, k, v = (self._split_heads(x) for x in (q, k, v))
        x = scaled_dot_product_attention(q, k, v, attn_mask=key_bias)
        return self.proj(x.transpose(1, 2).flatten(2))

    def weights(
        self, queries: Tensor, keys: Tensor, key_bias: Tensor | None = None
    ) -> Tensor:
        """Compute the attention weights (B, H, K, N); rows sum to 1."""
        q, k = (
            self._split_heads(self.q(queries)),
            self._split_heads(self.k(keys)),
        )
        return attention_logits(q, k, key_bias).softmax(dim=-1)

    def _split_heads(self, x: Tensor) -> Tensor:
        """Map (B, N, C) to (B, H, N, D)."""
        return x.unflatten(2, (self.num_heads, -1)).transpose(1, 2)


class ClassLayer(nn.Module):
    """Class attention and an FFN, both for the class tokens only.

    Source: Touvron's thesis (2022), section 3.6. As in the public code, it has
    no stochastic depth.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        feedforward_channels: int,
        qkv_bias: bool,
        norm_cfg: dict,
        layer_scale_init_value: float,
        with_cls_key: bool = True,
    ):
        super().__init__()
        self.with_cls_key = with_cls_key
        self.ln1 = build_norm_layer(norm_cfg, embed_dims)
        self.attn = ClassAttention(embed_dims, num_heads, qkv_bias)
        self.gamma1 = nn.Identity()
        if layer_scale_init_value:
            self.gamma1 = LayerScale(embed_dims, layer_scale_init_value)
        self.ln2 = build_norm_layer(norm_cfg, embed_dims)
        self.ffn = FFN(
            embed_dims,
            feedforward_channels,
            act_cfg=dict(type='GELU'),
            layer_scale_init_value=layer_scale_init_value,
        )

    def forward(
        self, cls: Tensor, patches: Tensor, key_bias: Tensor | None = None
    ) -> Tensor:
        """Update class tokens (B, K, C) by attention to patches (B, N, C).

        ``key_bias`` (B, 1, 1, N) is added to the logits of patches only.
        """
        queries, keys, key_bias = self._queries_and_keys(
            cls, patches, key_bias
        )
        cls = cls + self.gamma1(self.attn(queries, keys, key_bias))
        return self.ffn(self.ln2(cls), identity=cls)

    def weights(
        self, cls: Tensor, patches: Tensor, key_bias: Tensor | None = None
    ) -> Tensor:
        """Compute the attention of the class tokens.

        The shape is (B, H, K, K + N), class tokens first, if they are keys,
        and (B, H, K, N) otherwise.
        """
        queries, keys, key_bias = self._queries_and_keys(
            cls, patches, key_bias
        )
        return self.attn.weights(queries, keys, key_bias)

    def _queries_and_keys(
        self, cls: Tensor, patches: Tensor, key_bias: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return queries, keys and key bias."""
        num_cls = cls.size(1)
        keys = self.ln1(torch.cat((cls, patches), dim=1))
        queries = keys[:, :num_cls]
        if not self.with_cls_key:
            return queries, keys[:, num_cls:], key_bias
        if key_bias is not None:
            key_bias = pad(key_bias, (num_cls, 0))
        return queries, keys, key_bias


class ClassLayers(ModuleList):
    """A sequence of class layers over the same patches."""

    def forward(
        self, cls: Tensor, patches: Tensor, key_bias: Tensor | None = None
    ) -> Tensor:
        """Update the class tokens in all layers; see :class:`ClassLayer`."""
        for layer in self:
            cls = layer(cls, patches, key_bias)
        return cls

    def weights(
        self, cls: Tensor, patches: Tensor, key_bias: Tensor | None = None
    ) -> list[Tensor]:
        """Return each layer's attention; see :meth:`ClassLayer.weights`."""
        weights = []
        for layer in self:
            weights.append(layer.weights(cls, patches, key_bias))
            cls = layer(cls, patches, key_bias)
        return weights
