# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""TransFG and FFVT: attention selects the input tokens of the last block."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import check_integer

from ..reduction.attention import Attended
from ..reduction.tokens import Tokens
from ..reduction.trace import Kept
from .vit import BaselineViT, ObservedTokens


@torch.no_grad()
def select_part_tokens(
    row: Tensor, maps: Sequence, multiply: Callable
) -> Tensor:
    """Select the patch with the highest attention rollout per head, (B, H).

    Only the CLS row of the product over all layers is needed: one
    row-by-matrix product per layer, starting at the last, without identity.
    ``row`` (B, H, 1, N) is the CLS row in the last layer; ``multiply(row,
    attn)`` multiplies it by an entry of ``maps``. CLS, token 0, is never
    selected.
    """
    for attn in reversed(maps[:-1]):
        row = multiply(row, attn)
    return row[:, :, 0, 1:].argmax(dim=-1) + 1


def multiply_by_map(row: Tensor, attended: Attended, chunk_size=128) -> Tensor:
    """Multiply a row by an attention map, recomputed in chunks of queries."""
    queries = attended.q.split(chunk_size, dim=2)
    parts = zip(row.split(chunk_size, dim=-1), queries, strict=True)
    return sum(part @ attended.weights(q) for part, q in parts)


def append_softmax(maps: list[Tensor], logits: Tensor) -> Tensor:
    """Map logits (B, H, N, N) to attention weights, and append them."""
    maps.append(logits.softmax(dim=-1))
    return maps[-1]


@MODELS.register_module()
class TransFG(BaselineViT):
    """TransFG: the last block processes CLS and one patch per head.

    `TransFG: A Transformer Architecture for Fine-grained Recognition
    <https://arxiv.org/abs/2103.07976>`_. Patches overlap if ``stride`` is less
    than ``patch_size``; it is 12 in the public recipe. For its contrastive
    loss use :class:`ContrastiveClassifier`.

    Args:
        arch (str | dict): See :class:`BaselineViT`. Defaults to 'base'.
        img_size (int | tuple[int, int]): See :class:`BaselineViT`. Defaults to
            224.
        patch_size (int | tuple[int, int]): See :class:`BaselineViT`. Defaults
            to 16.
        stride (int | tuple[int, int], optional): See :class:`BaselineViT`.
            Defaults to None, ``patch_size``.
        last_block (str): See :class:`BaselineViT`. Defaults to 'new'.
        keep_maps (bool): Whether to keep the attention maps of all layers for
            the rollout, as in the public code: 1 GB per image for an
            overlapping ViT-B/16 at 448 px. False uses fused attention and
            recomputes the maps in chunks of queries. Defaults to True.
        **vit: Other arguments of :class:`BaselineViT`.

    Raises:
        Error: See :class:`BaselineViT`; if the image has fewer patches
            than heads.
    """

    def __init__(
        self,
        arch: str | dict = 'base',
        img_size: int | tuple[int, int] = 224,
        patch_size: int | tuple[int, int] = 16,
        *,
        stride: int | tuple[int, int] | None = None,
        last_block: Literal['new', 'pretrained'] = 'new',
        keep_maps: bool = True,
        **vit,
    ):
        super().__init__(
            arch,
            img_size,
            patch_size,
            stride=stride,
            last_block=last_block,
            **vit,
        )
        self.keep_maps = keep_maps

    @property
    def num_parts(self) -> int:
        """Number of selected patches, one per head."""
        return self.arch_settings['num_heads']

    def attention_block(
        self,
        layer: nn.Module,
        tokens: ObservedTokens,
        key_bias: Tensor | None,
        softmax: Callable | None,
    ) -> tuple[Tensor, Attended]:
        """See :class:`BaselineViT`; stores the attention map."""
        if self.keep_maps and layer is not self.last_layers[0]:
            softmax = partial(append_softmax, tokens.collected)
        return super().attention_block(layer, tokens, key_bias, softmax)

    def before_layer(self, i: int, tokens: ObservedTokens) -> Tokens:
        """See :class:`Reducible`; selects CLS and parts for the last block."""
        if self.keep_maps:
            del tokens.attended[:-1]  # their maps are stored
        if i < len(self.layers):
            return tokens
        row = tokens.attended[-1].cls_attn().unsqueeze(2)
        maps = tokens.collected if self.keep_maps else tokens.attended
        multiply = torch.matmul if self.keep_maps else multiply_by_map
        return tokens.keep(select_part_tokens(row, maps, multiply) - 1)


def mutual_attention(attended: Attended) -> Tensor:
    """Score tokens by attention from and to CLS, (B, N).

    The mutual attention of `FFVT`: the softmax of the CLS query over all keys
    times the softmax of the CLS key over all queries, each averaged over
    heads. One row and one column, O(N).
    """
    column = Attended(attended.k, attended.q, attended.v)
    return attended.cls_attn().mean(dim=1) * column.cls_attn().mean(dim=1)


@dataclass
class Selected:
    """Output tokens of a layer that the last block processes.

    Args:
        index (Tensor): Positions in the sequence, (B, K).
        features (Tensor): Their features, (B, K, C).
    """

    index: Tensor
    features: Tensor


@MODELS.register_module()
class FFVT(BaselineViT):
    """Feature fusion vision transformer: selects tokens in every layer.

    `Feature Fusion Vision Transformer for Fine-Grained Visual Categorization
    <https://arxiv.org/abs/2107.02341>`_. The last block processes CLS and
    ``num_tokens`` output tokens of each layer before it. As in the public
    code, these may include CLS.

    Args:
        arch (str | dict): See :class:`BaselineViT`. Defaults to 'base'.
        img_size (int | tuple[int, int]): See :class:`BaselineViT`. Defaults to
            224.
        patch_size (int | tuple[int, int]): See :class:`BaselineViT`. Defaults
            to 16.
        stride (int | tuple[int, int], optional): See :class:`BaselineViT`.
            Defaults to None, ``patch_size``.
        last_block (str): See :class:`BaselineViT`. Defaults to 'new'.
        num_tokens (int): Number of selected tokens per layer. Defaults to 12.
        **vit: Other arguments of :class:`BaselineViT`.

    Raises:
        Error: See :class:`BaselineViT`; if the image has fewer patches
            than ``num_tokens``.
    """

    ranks_by_cls = False  # attention rollout does not apply
    why_no_cls = 'the last block of FFVT processes tokens of all layers'

    def __init__(
        self,
        arch: str | dict = 'base',
        img_size: int | tuple[int, int] = 224,
        patch_size: int | tuple[int, int] = 16,
        *,
        stride: int | tuple[int, int] | None = None,
        last_block: Literal['new', 'pretrained'] = 'new',
        num_tokens: int = 12,
        **vit,
    ):
        check_integer(num_tokens=num_tokens)
        # needed by ``check_grid`` in the constructor
        self.num_parts = self.num_tokens = num_tokens
        super().__init__(
            arch,
            img_size,
            patch_size,
            stride=stride,
            last_block=last_block,
            **vit,
        )

    def after_layer(self, i: int, tokens: ObservedTokens) -> Tokens:
        """See :class:`Reducible`; selects tokens."""
        attended = tokens.attended.pop()
        if i < len(self.layers):
            index = mutual_attention(attended).topk(self.num_tokens).indices
            features = Kept(index).apply(tokens.features)
            tokens.collected.append(Selected(index, features))
        return tokens

    def before_layer(self, i: int, tokens: ObservedTokens) -> Tokens:
        """See :class:`Reducible`; joins CLS and all selected tokens."""
        if i < len(self.layers):
            return tokens
        selected = tokens.collected
        index = [part.index for part in selected]
        features = [part.features for part in selected]
        cls = index[0].new_zeros(index[0].size(0), 1)
        joined = tokens.gather(torch.cat((cls, *index), dim=1))
        return joined.with_features(
            torch.cat((tokens.features[:, :1], *features), dim=1)
        )
