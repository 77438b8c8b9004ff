# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""n layers side by side as one of n x h heads and n times the FFN width."""

from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple

import torch
import torch.nn.functional as F
from mmpretrain.models.backbones.vision_transformer import (
    TransformerEncoderLayer,
)
from torch import Tensor, nn


class Half(NamedTuple):
    """The linear layers of one half of a layer, attention or FFN."""

    norm: nn.LayerNorm
    first: nn.Linear
    last: nn.Linear
    scale: nn.Module
    parts: int


class Folded(NamedTuple):
    """Weights of both linear layers of n halves, after a norm without affine.

    Args:
        weight (Tensor): Of the first one, (n O, C).
        bias (Tensor): Of the first one, (n O,).
        last_weight (Tensor): Of the last one, (C, n I).
        last_bias (Tensor): Of the last one, a row a branch, (n, C).
    """

    weight: Tensor
    bias: Tensor
    last_weight: Tensor
    last_bias: Tensor


def attention_half(layer: TransformerEncoderLayer) -> Half:
    """Norm and linear layers of the attention of a layer."""
    attn = layer.attn
    return Half(layer.ln1, attn.qkv, attn.proj, attn.gamma1, parts=3)


def ffn_half(layer: TransformerEncoderLayer) -> Half:
    """Norm and linear layers of the FFN of a layer."""
    ffn = layer.ffn
    return Half(layer.ln2, ffn.layers[0][0], ffn.layers[1], ffn.gamma2, 1)


def fold(halves: Sequence[Half]) -> Folded:
    """Join halves that read the same tokens and whose outputs are summed.

    The affine of each norm goes into the first linear layer, LayerScale into
    the last one; gradients flow through. Of the first outputs come all
    queries, then all keys, then all values, those of a branch together.
    """
    weights = [half.first.weight * half.norm.weight for half in halves]
    biases = [
        F.linear(half.norm.bias, half.first.weight, half.first.bias)
        for half in halves
    ]
    parts = halves[0].parts
    last = [half.scale(half.last.weight.T).T for half in halves]
    return Folded(
        _side_by_side(weights, parts),
        _side_by_side(biases, parts),
        torch.cat(last, dim=1),
        torch.stack([half.scale(half.last.bias) for half in halves]),
    )


def _side_by_side(rows: Sequence[Tensor], parts: int) -> Tensor:
    """Rows (O, ...) of n branches as (n O, ...), part by part."""
    split = [one.unflatten(0, (parts, -1)) for one in rows]
    return torch.cat(split, dim=1).flatten(0, 1)


@torch.no_grad()
def fused(branches: Sequence[TransformerEncoderLayer]) -> nn.Module:
    """The plain layer that n parallel layers are.

    Returns:
        TransformerEncoderLayer: A layer of n x h heads with n times the
        hidden channels, without LayerScale and with norms that have no
        affine.
    """
    layer = deepcopy(branches[0])
    layer.ln1, layer.ln2 = _bare(layer.ln1), _bare(layer.ln2)
    attn, ffn = layer.attn, layer.ffn
    attn.qkv, attn.proj = _linear_layers(map(attention_half, branches))
    attn.num_heads *= len(branches)
    attn.embed_dims *= len(branches)  # what all heads have together
    attn.gamma1 = nn.Identity()
    ffn.layers[0][0], ffn.layers[1] = _linear_layers(map(ffn_half, branches))
    ffn.feedforward_channels *= len(branches)
    ffn.gamma2 = nn.Identity()
    return layer


def _bare(norm: nn.LayerNorm) -> nn.LayerNorm:
    return nn.LayerNorm(
        norm.normalized_shape, norm.eps, elementwise_affine=False
    ).train(norm.training)


def _linear_layers(halves) -> tuple[nn.Linear, nn.Linear]:
    weight, bias, last_weight, last_bias = fold(list(halves))
    return _linear(weight, bias), _linear(last_weight, last_bias.sum(dim=0))


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    linear = nn.Linear(*weight.T.shape, device='meta')
    linear.weight, linear.bias = nn.Parameter(weight), nn.Parameter(bias)
    return linear
