# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The decoders of MIRL, one per segment, with memory of earlier segments.

Shapes: B images, N patches, V of them visible, C channels of the encoder, D of
the decoders, M tokens of the memory, g (1 + V) for decoder g.
"""

from math import isqrt
from typing import Any, Literal

import torch
import torch.nn.functional as F
from mmengine.model import BaseModule, ModuleList
from mmpretrain.models.backbones.vision_transformer import (
    TransformerEncoderLayer,
)
from mmpretrain.models.utils import (
    build_2d_sincos_position_embedding,
    build_norm_layer,
)
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice, check_integer

from .mae import check_width

IN_CHANNELS, MLP_RATIO = 3, 4


class MemoryAttention(nn.Module):
    """Attention of queries (B, N, D) to a memory (B, M, D).

    mmpretrain's ``CrossMultiheadAttention`` lacks the key bias of the
    releases.
    """

    def __init__(self, embed_dims: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.q = nn.Linear(embed_dims, embed_dims)
        self.kv = nn.Linear(embed_dims, 2 * embed_dims)
        self.proj = nn.Linear(embed_dims, embed_dims)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        """Return the attention output, (B, N, D)."""
        parts = (self.q(x), *self.kv(memory).chunk(2, dim=-1))
        q, k, v = (
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for part in parts
        )
        read = F.scaled_dot_product_attention(q, k, v)
        return self.proj(read.transpose(1, 2).flatten(2))


class DecoderLayer(TransformerEncoderLayer):
    """Decoder layer with optional attention to a memory before the FFN.

    Densely interconnected decoding: `Masked Image Residual Learning for
    Scaling Deeper Vision Transformers`, section 3.1, equation 8. The norms of
    queries and memory follow the public code.
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
    """Linear layer with weight normalization of gain 1 per input channel."""

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, F.normalize(self.weight, dim=0), self.bias)


class Decoder(BaseModule):
    """Decoder of one segment; see :class:`MIRLDecoders`.

    ``embed`` maps tokens of the segment to D channels, ``layers`` take (x,
    memory), and ``pred`` maps D channels to the pixels of a patch.
    """

    def __init__(self, embed, layers, num_patches, norm, pred):
        super().__init__()
        self.embed, self.ln, self.pred = embed, norm, pred
        self.layers = ModuleList(layers)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, pred.in_features))
        positions = build_2d_sincos_position_embedding(
            isqrt(num_patches), pred.in_features, cls_token=True
        )
        self.pos_embed = nn.Parameter(positions, requires_grad=False)

    def init_weights(self) -> None:
        """Initialize the parameters, except the fixed positions."""
        super().init_weights()
        nn.init.normal_(self.mask_token, std=0.02)

    def forward(
        self, x: Tensor, memory: Tensor | None, ids_restore: Tensor
    ) -> Tensor:
        """Predict the pixels of all patches, (B, N, P * P * 3).

        ``x`` (B, 1 + V, D) are embedded segment tokens, ``memory`` (B, M, D)
        those of earlier segments, and ``ids_restore`` (B, N) as in
        :class:`Encoded`.
        """
        B, N = ids_restore.shape
        masked = self.mask_token.expand(B, N + 1 - x.size(1), -1)
        patches = torch.cat((x[:, 1:], masked), dim=1)
        index = ids_restore.unsqueeze(-1).expand(-1, -1, x.size(-1))
        x = torch.cat((x[:, :1], patches.gather(1, index)), dim=1)
        x = x + self.pos_embed
        for layer in self.layers:
            x = layer(x, memory)
        return self.pred(self.ln(x))[:, 1:]


@MODELS.register_module()
class MIRLDecoders(BaseModule):
    """One decoder per segment of an encoder.

    `Masked Image Residual Learning for Scaling Deeper Vision Transformers
    <https://arxiv.org/abs/2309.14136>`_, section 3.1. Decoder g predicts the
    pixels of all patches from z_g and mask tokens. With densely interconnected
    decoding (DID), its memory is the embedded z_0 to z_{g-1}. Decoders share
    no weights.

    Args:
        decoder_embed_dims (int): Channels D of the decoders.
        decoder_depth (int): Layers per decoder.
        decoder_num_heads (int): Attention heads.
        did (str, optional): Decoder layers that attend to the memory: 'first',
            as in the paper, or 'all', as in the public code; None: no layer.
            Defaults to 'first'.
        weight_norm (bool): Whether the weights of the last layer are
            normalized, per input channel over all pixels, with a gain of 1.
            Defaults to True.
        encoder (SegmentedMAEViT): Encoder that defines segments, patches,
            channels and norms; set by ``MIRL``.

    Raises:
        Error: If a number is not a positive integer, the channels are not
            divisible by the heads and by 4, or ``did`` is unknown.
    """

    def __init__(
        self,
        decoder_embed_dims: int,
        decoder_depth: int,
        decoder_num_heads: int,
        did: Literal['first', 'all'] | None = 'first',
        weight_norm: bool = True,
        *,
        encoder: Any,
    ):
        super().__init__()
        D, heads = decoder_embed_dims, decoder_num_heads
        check_integer(decoder_depth=decoder_depth)
        check_width(heads, decoder_embed_dims=D)
        if did is not None:
            check_choice(('first', 'all'), did=did)
        num_reading = {None: 0, 'first': 1, 'all': decoder_depth}[did]
        C, norm_cfg = encoder.embed_dims, encoder.norm_cfg
        pixels = encoder.patch_size**2 * IN_CHANNELS
        linear = UnitLinear if weight_norm else nn.Linear

        def embedding(is_last=False):  # encoder output is normalized
            first = nn.Identity() if is_last else build_norm_layer(norm_cfg, C)
            return nn.Sequential(first, nn.Linear(C, D))

        def layer(index):
            reads, hidden = index < num_reading, MLP_RATIO * D
            return DecoderLayer(D, heads, hidden, norm_cfg, reads)

        self.decoders = ModuleList(
            Decoder(
                embedding(is_last=g == encoder.num_segments),
                [layer(index) for index in range(decoder_depth)],
                encoder.num_patches,
                build_norm_layer(norm_cfg, D),
                linear(D, pixels),
            )
            for g in range(1, encoder.num_segments + 1)
        )
        self.memory = embedding() if did else None  # embeds z_0

    def forward(
        self, segments: list[Tensor], ids_restore: Tensor
    ) -> list[Tensor]:
        """Predict the pixels of all patches with each decoder.

        Args:
            segments (list[Tensor]): z_0 to z_G, the last one normalized, (B, 1
                + V, C).
            ids_restore (Tensor): See :class:`Encoded`, (B, N).

        Returns:
            list[Tensor]: One prediction per segment, (B, N, P * P * 3).
        """
        made = zip(self.decoders, segments[1:], strict=True)
        embedded = [decoder.embed(z) for decoder, z in made]
        memories = self.memories(segments[0], embedded)
        parts = zip(self.decoders, embedded, memories, strict=True)
        return [
            decoder(x, memory, ids_restore) for decoder, x, memory in parts
        ]

    def memories(
        self, z_0: Tensor, embedded: list[Tensor]
    ) -> list[Tensor | None]:
        """Return the memory (B, M, D) of each decoder, None without DID."""
        if self.memory is None:
            return [None] * len(embedded)
        earlier = [self.memory(z_0), *embedded]
        return [torch.cat(earlier[:g], dim=1) for g in range(1, len(earlier))]
