# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""TransFG and FFVT: the last block reads the tokens that attention chooses."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mmclca.registry import MODELS
from mmclca.utils.messages import integer

from ..reduction.attention import Attended
from ..reduction.trace import Kept
from .vit import BaselineViT


@torch.no_grad()
def select_parts(row: Tensor, maps: Sequence, multiply: Callable) -> Tensor:
    """Choose the patch that each head reads most through all layers.

    Of the product of all maps, as `TransFG` has it, the row of CLS is all
    that is needed: a product of a row and a matrix a layer, from the last
    layer on, in place of one of two matrices. No identity is added.

    Args:
        row (Tensor): What CLS reads in the last of these layers, (B, H, 1,
            N).
        maps (Sequence): Attention of all these layers, (B, H, N, N) each,
            or what ``multiply`` takes in its place.
        multiply (Callable): Multiplies the row by one of them, such as
            ``torch.matmul``.

    Returns:
        Tensor: Indices (B, H); CLS is token 0 and none of them.
    """
    for attn in reversed(maps[:-1]):
        row = multiply(row, attn)
    return row[:, :, 0, 1:].argmax(dim=-1) + 1


def multiply_by_attention(
    row: Tensor, attended: Attended, chunk_size=128
) -> Tensor:
    """Multiply a row by a map that is made anew, a few queries at a time."""
    queries = attended.q.split(chunk_size, dim=2)
    parts = zip(row.split(chunk_size, dim=-1), queries, strict=True)
    return sum(part @ attended.weights(q) for part, q in parts)


class AttentionMaps(list):
    """A softmax for :func:`.attention.attend` that keeps what it makes."""

    def __call__(self, logits: Tensor) -> Tensor:
        """Turn logits (B, H, N, N) into attention."""
        self.append(logits.softmax(dim=-1))
        return self[-1]


@MODELS.register_module()
class TransFG(BaselineViT):
    """TransFG: the last block reads CLS and one patch of each head.

    `TransFG: A Transformer Architecture for Fine-grained Recognition
    <https://arxiv.org/abs/2103.07976>`_. Patches overlap with a ``stride``
    below ``patch_size``, 12 in the public recipe. Its contrast is that of
    :class:`ContrastiveClassifier`.

    Args:
        keep_maps (bool): Whether the attention maps of all layers are kept
            for the rollout, as in the public code: 1 GB an image for ViT-B/16
            with overlap at 448 px. False keeps attention fused and makes them
            anew, a few queries at a time. Defaults to True.
        **vit: The arguments of :class:`BaselineViT`.

    Raises:
        ValueError: See :class:`BaselineViT`; if there are fewer patches than
            heads.
    """

    def __init__(self, *args, keep_maps: bool = True, **vit):
        super().__init__(*args, **vit)
        self.keep_maps = keep_maps

    @property
    def num_parts(self) -> int:
        """Patches that are chosen, one of each head."""
        return self.arch_settings['num_heads']

    def forward(self, x: Tensor) -> tuple[Tensor]:
        """Map images (B, 3, H, W) to CLS of the last block, (B, C)."""
        x, maps = self.embed_tokens(x), AttentionMaps()
        softmax = maps if self.keep_maps else None
        for layer in self.layers:
            x, attended = self.run_layer(layer, x, softmax)
            if not self.keep_maps:
                maps.append(attended)
        row = attended.cls_attn().unsqueeze(2)
        multiply = torch.matmul if self.keep_maps else multiply_by_attention
        parts = select_parts(row, maps, multiply)
        return self.run_last_block(x[:, :1], Kept(parts).apply(x))


def mutual_attention(attended: Attended) -> Tensor:
    """Rate all tokens by what CLS pays them and what they pay CLS, (B, N).

    The mutual attention of `FFVT`: the softmax of CLS over all keys times
    that of the key of CLS over all queries, each a mean over heads. One row
    and one column, O(N).
    """
    column = Attended(attended.k, attended.q, attended.v)
    return attended.cls_attn().mean(dim=1) * column.cls_attn().mean(dim=1)


@MODELS.register_module()
class FFVT(BaselineViT):
    """Feature fusion vision transformer: tokens chosen in every layer.

    `Feature Fusion Vision Transformer for Fine-Grained Visual Categorization
    <https://arxiv.org/abs/2107.02341>`_. The last block reads CLS and
    ``num_tokens`` tokens that leave each layer before it. CLS may be among
    them, as in the public code.

    Args:
        num_tokens (int): Tokens chosen in a layer. Defaults to 12.
        **vit: The arguments of :class:`BaselineViT`.

    Raises:
        ValueError: See :class:`BaselineViT`; if there are fewer patches than
            ``num_tokens``.
    """

    def __init__(self, *args, num_tokens: int = 12, **vit):
        integer(num_tokens=num_tokens)
        # before the grid is checked
        self.num_parts = self.num_tokens = num_tokens
        super().__init__(*args, **vit)

    def forward(self, x: Tensor) -> tuple[Tensor]:
        """Map images (B, 3, H, W) to CLS of the last block, (B, C)."""
        x, chosen = self.embed_tokens(x), []
        for layer in self.layers:
            x, attended = self.run_layer(layer, x)
            index = mutual_attention(attended).topk(self.num_tokens).indices
            chosen.append(Kept(index).apply(x))
        return self.run_last_block(x[:, :1], *chosen)
