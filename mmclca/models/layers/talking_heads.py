# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Talking heads: attention with heads mixed before and after the softmax."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from mmpretrain.models.backbones.vision_transformer import (
    TransformerEncoderLayer,
)
from mmpretrain.models.utils import MultiheadAttention
from torch import Tensor, nn

from ..reduction.attention import (
    Attended,
    MixedHeads,
    attend,
    attention_logits,
)

# queries per chunk: maps for 577 tokens then need less memory than an FFN
CHUNK_SIZE = 128


class TalkingHeadsAttention(MixedHeads, MultiheadAttention):
    """mmpretrain's attention with linear maps across the heads.

    Logits are mixed across heads before the softmax and weights after it, so
    rows need not sum to 1. Without autograd, memory holds the maps of
    ``CHUNK_SIZE`` queries at most.

    Source: Touvron's thesis (2022), section 3.7, after `Talking-Heads
    Attention`.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        drop_path_rate: float = 0.0,
        **attention,
    ):
        drop_path = dict(type='DropPath', drop_prob=drop_path_rate)
        super().__init__(
            embed_dims, num_heads, dropout_layer=drop_path, **attention
        )
        self.mix_logits = nn.Linear(self.num_heads, self.num_heads)
        self.mix_weights = nn.Linear(self.num_heads, self.num_heads)

    def forward(self, x: Tensor) -> Tensor:
        """Map normalized tokens (B, N, C) to the residual update."""
        return attend(self, x)[0]

    def attended(
        self, q: Tensor, k: Tensor, v: Tensor, key_bias: Tensor | None
    ) -> Attended:
        """See :class:`MixedHeads`."""
        return AttendedTalking(q, k, v, key_bias, attn=self)


@dataclass
class AttendedTalking(Attended):
    """Queries, keys and values of talking heads; ``attn`` mixes the heads."""

    attn: TalkingHeadsAttention = field(kw_only=True)

    def weights(self, q: Tensor, softmax: Callable | None = None) -> Tensor:
        """Compute the weights after the second mixing; see :class:`Attended`.

        The key bias is added between both mixings. The second mixing's own
        bias is multiplied by the token size: a token merged from two patches
        acts like these two, and a token with weight 0 is ignored.
        """
        logits, counts = attention_logits(q, self.k), None
        logits = _mix(self.attn.mix_logits, logits)
        if self.key_bias is not None:
            logits, counts = logits + self.key_bias, self.key_bias.exp()
        weights = logits.softmax(-1) if softmax is None else softmax(logits)
        return _mix(self.attn.mix_weights, weights, counts)

    def values(self, softmax: Callable | None = None, *_) -> Tensor:
        """See :class:`Attended`; weights have no dropout."""
        if softmax is not None:
            return super().values(softmax)
        chunks = self.q.split(CHUNK_SIZE, dim=2)
        return torch.cat([self.weights(q) @ self.v for q in chunks], dim=2)


def _mix(
    linear: nn.Linear, maps: Tensor, counts: Tensor | None = None
) -> Tensor:
    """Mix the heads of maps (B, H, n, N) linearly, position by position.

    Applying ``linear`` directly needs the heads last: copies, and twice the
    time of the whole attention. ``counts`` (B, 1, 1, N) multiplies the bias
    for each key.
    """
    weight = linear.weight.expand(maps.size(0), -1, -1)
    if counts is None:
        mixed = torch.baddbmm(linear.bias[:, None], weight, maps.flatten(2))
        return mixed.view_as(maps)
    mixed = torch.bmm(weight, maps.flatten(2)).view_as(maps)
    return mixed + linear.bias[:, None, None] * counts


class TalkingHeadsLayer(TransformerEncoderLayer):
    """mmpretrain's vision transformer layer with talking heads."""

    def __init__(self, embed_dims: int, num_heads: int, **layer):
        super().__init__(embed_dims, num_heads, **layer)
        shared = layer.keys() - {'feedforward_channels', 'norm_cfg'}
        self.attn = TalkingHeadsAttention(
            embed_dims, num_heads, **{key: layer[key] for key in shared}
        )
