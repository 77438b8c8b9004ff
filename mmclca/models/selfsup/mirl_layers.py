# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Layers of MIRL's decoders.

Shapes: B images, N tokens, D channels, M tokens of the memory.
"""

import torch.nn.functional as F
from mmpretrain.models.backbones.vision_transformer import (
    TransformerEncoderLayer,
)
from mmpretrain.models.utils import build_norm_layer
from torch import Tensor, nn


class MemoryAttention(nn.Module):
    """Attention of queries (B, N, D) to a memory (B, M, D).

    mmpretrain's ``CrossMultiheadAttention`` has no bias of keys, which the
    releases have.
    """

    def __init__(self, embed_dims: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.q = nn.Linear(embed_dims, embed_dims)
        self.kv = nn.Linear(embed_dims, 2 * embed_dims)
        self.proj = nn.Linear(embed_dims, embed_dims)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        """Read the memory, (B, N, D)."""
        parts = (self.q(x), *self.kv(memory).chunk(2, dim=-1))
        q, k, v = (
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for part in parts
        )
        read = F.scaled_dot_product_attention(q, k, v)
        return self.proj(read.transpose(1, 2).flatten(2))


class DecoderLayer(TransformerEncoderLayer):
    """Layer of a decoder, which may read a memory, before the FFN.

    With densely interconnected decoding: `Masked Image Residual Learning for
    Scaling Deeper Vision Transformers`, section 3.1, equation 8. The norms of
    queries and memory are those of the public code.
    """

    def __init__(self, embed_dims, num_heads, hidden, norm_cfg, reads: bool):
        super().__init__(embed_dims, num_heads, hidden, norm_cfg=norm_cfg)
        self.reads = reads
        if reads:
            self.ln_query = build_norm_layer(norm_cfg, embed_dims)
            self.ln_memory = build_norm_layer(norm_cfg, embed_dims)
            self.cross_attn = MemoryAttention(embed_dims, num_heads)

    def forward(self, x: Tensor, memory: Tensor | None) -> Tensor:
        x = x + self.attn(self.ln1(x))
        if self.reads:
            x = x + self.cross_attn(self.ln_query(x), self.ln_memory(memory))
        return self.ffn(self.ln2(x), identity=x)


class UnitLinear(nn.Linear):
    """Linear layer with weight normalization of gain 1 for each input."""

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, F.normalize(self.weight, dim=0), self.bias)
