# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Class attention: few queries read the patches, which stay as they are."""

import torch
from mmcv.cnn.bricks.transformer import FFN
from mmengine.model import ModuleList
from mmpretrain.models.utils import LayerScale, build_norm_layer
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention

from ..reduction.attention import logits_of


class ClassAttention(nn.Module):
    """Attention of K queries to N keys, O(KN).

    Source: Touvron's thesis (2022), section 3.6; with one query it is the
    row of CLS in an ordinary self-attention with the same weights.

    Raises:
        ValueError: If the channels do not divide into the heads.
    """

    def __init__(self, embed_dims: int, num_heads: int, qkv_bias: bool = True):
        super().__init__()
        if embed_dims % num_heads:
            raise ValueError(
                f'embed_dims={embed_dims} is not divisible by '
                f'num_heads={num_heads}; use a divisor'
            )
        self.num_heads = num_heads
        self.q = nn.Linear(embed_dims, embed_dims, bias=qkv_bias)
        self.k = nn.Linear(embed_dims, embed_dims, bias=qkv_bias)
        self.v = nn.Linear(embed_dims, embed_dims, bias=qkv_bias)
        self.proj = nn.Linear(embed_dims, embed_dims)

    def forward(
        self, queries: Tensor, keys: Tensor, key_bias: Tensor | None = None
    ) -> Tensor:
        """Return the sums of values that the queries read.

        Args:
            queries (Tensor): Normalized, (B, K, C).
            keys (Tensor): Normalized; the values come from them too,
                (B, N, C).
            key_bias (Tensor, optional): Added to the logits of each key,
                (B, 1, 1, N).

        Returns:
            Tensor: (B, K, C).
        """
        q, k, v = self.q(queries), self.k(keys), self.v(keys)
        q, k, v = (self._split_heads(x) for x in (q, k, v))
        x = scaled_dot_product_attention(q, k, v, attn_mask=key_bias)
        return self.proj(x.transpose(1, 2).flatten(2))

    def weights(
        self, queries: Tensor, keys: Tensor, key_bias: Tensor | None = None
    ) -> Tensor:
        """Compute the weight of each key for each query, (B, H, K, N).

        See :meth:`forward`; the rows sum to 1.
        """
        q, k = (
            self._split_heads(self.q(queries)),
            self._split_heads(self.k(keys)),
        )
        return logits_of(q, k, key_bias).softmax(dim=-1)

    def _split_heads(self, x: Tensor) -> Tensor:
        """(B, N, C) to (B, H, N, D)."""
        return x.unflatten(2, (self.num_heads, -1)).transpose(1, 2)


class ClassLayer(nn.Module):
    """Class attention and an FFN, both for the class tokens only.

    Source: Touvron's thesis (2022), section 3.6. No stochastic depth, as in
    the public code.
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
        """Return the class tokens after they read the patches.

        Args:
            cls (Tensor): Class tokens, (B, K, C).
            patches (Tensor): (B, N, C); they are not changed.
            key_bias (Tensor, optional): Added to the logits of each patch,
                (B, 1, 1, N); class tokens have none.

        Returns:
            Tensor: (B, K, C).
        """
        update = self.attn(*self._queries_and_keys(cls, patches, key_bias))
        cls = cls + self.gamma1(update)
        return self.ffn(self.ln2(cls), identity=cls)

    def weights(self, *tokens) -> Tensor:
        """Compute the weight of each key for each class token.

        Returns:
            Tensor: (B, H, K, K + N), the class tokens first where they are
            among the keys, else (B, H, K, N).
        """
        return self.attn.weights(*self._queries_and_keys(*tokens))

    def _queries_and_keys(
        self, cls: Tensor, patches: Tensor, key_bias: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Queries, keys and their bias."""
        num_cls = cls.size(1)
        keys = self.ln1(torch.cat((cls, patches), dim=1))
        queries = keys[:, :num_cls]
        if not self.with_cls_key:
            return queries, keys[:, num_cls:], key_bias
        if key_bias is not None:
            key_bias = pad(key_bias, (num_cls, 0))
        return queries, keys, key_bias


class ClassLayers(ModuleList):
    """Class layers in turn, of patches that none of them changes."""

    def forward(self, cls: Tensor, *patches: Tensor | None) -> Tensor:
        """Return the class tokens after all layers; see
        :class:`ClassLayer`."""
        for layer in self:
            cls = layer(cls, *patches)
        return cls

    def weights(self, cls: Tensor, *patches: Tensor | None) -> list[Tensor]:
        """Return those of each layer; see :meth:`ClassLayer.weights`."""
        weights = []
        for layer in self:
            weights.append(layer.weights(cls, *patches))
            cls = layer(cls, *patches)
        return weights
