# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Talking heads: attention whose heads are mixed around the softmax."""

from collections.abc import Callable

import torch
from mmpretrain.models.backbones.vision_transformer import (
    TransformerEncoderLayer,
)
from mmpretrain.models.utils import MultiheadAttention
from torch import Tensor, nn

from ..reduction.attention import Attended, MixedHeads, attend, logits_of

# queries at a time: the maps of 577 tokens then take less than an FFN
CHUNK_SIZE = 128


class TalkingHeadsAttention(MixedHeads, MultiheadAttention):
    """mmpretrain's attention with linear maps over the heads.

    Logits of all heads are mixed before the softmax, weights after it, so
    that rows of weights need not sum to 1. Without autograd no more than the
    maps of ``CHUNK_SIZE`` queries are in memory.

    Source: Touvron's thesis (2022), section 3.7, after `Talking-Heads
    Attention`.

    Args:
        *sizes (int): ``embed_dims`` and ``num_heads``.
        drop_path_rate (float): Rate of stochastic depth. Defaults to 0.
        **attention: ``qkv_bias`` and ``layer_scale_init_value`` of
            ``MultiheadAttention``.
    """

    def __init__(self, *sizes: int, drop_path_rate: float = 0.0, **attention):
        drop_path = dict(type='DropPath', drop_prob=drop_path_rate)
        super().__init__(*sizes, dropout_layer=drop_path, **attention)
        self.mix_logits = nn.Linear(self.num_heads, self.num_heads)
        self.mix_weights = nn.Linear(self.num_heads, self.num_heads)

    def forward(self, x: Tensor) -> Tensor:
        """Normalized tokens (B, N, C) to the update of the residual."""
        return attend(self, x)[0]

    def attended(
        self, q: Tensor, k: Tensor, v: Tensor, key_bias: Tensor | None
    ) -> Attended:
        """See :class:`MixedHeads`."""
        return AttendedTalking(self, q, k, v, key_bias)

    def read(self, attended: Attended) -> Tensor:
        """See :class:`MixedHeads`."""
        chunks = attended.q.split(CHUNK_SIZE, dim=2)
        parts = [attended.weights(q) @ attended.v for q in chunks]
        return torch.cat(parts, dim=2)


class AttendedTalking(Attended):
    """Queries, keys and values of talking heads.

    Args:
        attn (TalkingHeadsAttention): Mixes the heads.
        q (Tensor): Queries (B, H, N, D).
        k (Tensor): Keys (B, H, N, D).
        v (Tensor): Values (B, H, N, D).
        key_bias (Tensor, optional): Added to the mixed logits, (B, 1, 1, N).
    """

    def __init__(
        self,
        attn: TalkingHeadsAttention,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        key_bias: Tensor | None,
    ):
        super().__init__(q, k, v, key_bias)
        self.attn = attn

    def weights(self, q: Tensor, softmax: Callable | None = None) -> Tensor:
        """See :class:`Attended`: those after the second mixing.

        The bias of keys is between the two, and what the second adds to all
        weights it adds as often as a key counts: a token that is two patches
        is read as these two, and one of weight 0 is not read.
        """
        logits, counts = logits_of(q, self.k), None
        logits = _mix(self.attn.mix_logits, logits)
        if self.key_bias is not None:
            logits, counts = logits + self.key_bias, self.key_bias.exp()
        weights = logits.softmax(-1) if softmax is None else softmax(logits)
        return _mix(self.attn.mix_weights, weights, counts)


def _mix(
    linear: nn.Linear, maps: Tensor, counts: Tensor | None = None
) -> Tensor:
    """Mix the heads of maps (B, H, n, N) linearly; places stay.

    ``linear`` itself would have the heads last, which takes copies and twice
    the time of all attention.

    Args:
        linear (nn.Linear): From H heads to as many.
        maps (Tensor): Logits or weights.
        counts (Tensor, optional): How often its bias is added to each key,
            (B, 1, 1, N). Defaults to None, once.
    """
    weight = linear.weight.expand(maps.size(0), -1, -1)
    if counts is None:
        mixed = torch.baddbmm(linear.bias[:, None], weight, maps.flatten(2))
        return mixed.view_as(maps)
    mixed = torch.bmm(weight, maps.flatten(2)).view_as(maps)
    return mixed + linear.bias[:, None, None] * counts


class TalkingHeadsLayer(TransformerEncoderLayer):
    """mmpretrain's layer of a vision transformer, with talking heads."""

    def __init__(self, embed_dims: int, num_heads: int, **layer):
        super().__init__(embed_dims, num_heads, **layer)
        shared = layer.keys() - {'feedforward_channels', 'norm_cfg'}
        self.attn = TalkingHeadsAttention(
            embed_dims, num_heads, **{key: layer[key] for key in shared}
        )
