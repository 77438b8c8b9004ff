# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Layers with n parallel branches, equal to n x h heads and an n-fold FFN."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import NamedTuple

import torch
import torch.nn.functional as F
from mmcv.cnn.bricks.transformer import FFN
from mmengine.model import BaseModule, ModuleList
from mmpretrain.models.backbones.vision_transformer import (
    TransformerEncoderLayer,
)
from torch import Tensor, nn

from mmclca.errors import Error

from ..reduction.attention import ParallelAttention, attend
from .resmlp_layer import split_affine


class Sublayer(NamedTuple):
    """Norm, linear layers and LayerScale in the attention or FFN of a layer.

    ``parts`` is the number of outputs that ``first`` concatenates: 3 in
    attention (queries, keys and values), 1 in the FFN.
    """

    norm: nn.LayerNorm
    first: nn.Linear
    last: nn.Linear
    scale: nn.Module
    parts: int


class JoinedWeights(NamedTuple):
    """Weights of n sublayers after a norm without affine map.

    ``weight`` (n O, C) and ``bias`` (n O,) belong to the first linear layer,
    ``last_weight`` (C, n I) and ``last_bias``, one row per branch (n, C), to
    the last.
    """

    weight: Tensor
    bias: Tensor
    last_weight: Tensor
    last_bias: Tensor


def get_attention(layer: TransformerEncoderLayer) -> Sublayer:
    """Return the modules of a layer's attention."""
    attn = layer.attn
    return Sublayer(layer.ln1, attn.qkv, attn.proj, attn.gamma1, parts=3)


def get_ffn(layer: TransformerEncoderLayer) -> Sublayer:
    """Return the modules of a layer's FFN."""
    ffn = layer.ffn
    return Sublayer(layer.ln2, ffn.layers[0][0], ffn.layers[1], ffn.gamma2, 1)


def join_branches(sublayers: Sequence[Sublayer]) -> JoinedWeights:
    """Join sublayers with the same input and summed outputs.

    The affine map of each norm is folded into the first linear layer and
    LayerScale into the last one; gradients flow through. The first outputs are
    ordered as all queries, all keys, all values, grouped by branch.
    """
    weights = [
        branch.first.weight * branch.norm.weight for branch in sublayers
    ]
    biases = [
        F.linear(branch.norm.bias, branch.first.weight, branch.first.bias)
        for branch in sublayers
    ]
    parts = sublayers[0].parts
    last = [branch.scale(branch.last.weight.T).T for branch in sublayers]
    return JoinedWeights(
        _interleave(weights, parts),
        _interleave(biases, parts),
        torch.cat(last, dim=1),
        torch.stack([branch.scale(branch.last.bias) for branch in sublayers]),
    )


def _interleave(rows: Sequence[Tensor], parts: int) -> Tensor:
    """Join rows (O, ...) of n branches to (n O, ...).

    First come the first parts of all branches, for example all queries, then
    all second parts, and so on.
    """
    split = [tensor.unflatten(0, (parts, -1)) for tensor in rows]
    return torch.cat(split, dim=1).flatten(0, 1)


def _fuse_linear(sublayers: list[Sublayer]) -> tuple[nn.Linear, nn.Linear]:
    """Return the first and the last linear layer of joined sublayers."""
    joined = join_branches(sublayers)
    first = _build_linear(joined.weight, joined.bias)
    last = _build_linear(joined.last_weight, joined.last_bias.sum(dim=0))
    return first, last


def _build_linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    out_features, in_features = weight.shape
    linear = nn.Linear(in_features, out_features, device='meta')
    linear.weight, linear.bias = nn.Parameter(weight), nn.Parameter(bias)
    return linear


class ParallelLayer(BaseModule):
    r"""A transformer layer with n parallel attentions, then n parallel FFNs.

    `Three things everyone should know about Vision Transformers`, section
    3.2:

    .. math::
        x' &= x + \sum_b \gamma_b \, \mathrm{MHSA}_b(\mathrm{LN}_b(x)) \\
        x'' &= x' + \sum_b \gamma'_b \, \mathrm{FFN}_b(\mathrm{LN}'_b(x'))

    Each branch is an mmpretrain layer with its own norms and LayerScale. The
    class offers the interface that :class:`TokenReductionViT` needs: ``ln1``,
    ``attn`` (with n x h heads), ``ln2`` and ``ffn``.

    In training, all branches share one matrix product per linear layer, whose
    weights :func:`join_branches` joins in each pass; stochastic depth drops
    each branch of each sample independently. Parameters are read directly:
    hooks, LoRA or FSDP wrappers on linear layers in the branches have no
    effect. In evaluation, the branches run sequentially, because joining would
    be slower for small batches; :meth:`fuse` joins them permanently.

    Raises Error if the layer has dropout, norms other than LayerNorm, or
    an FFN without exactly two linear layers.
    """

    def __init__(self, layer: TransformerEncoderLayer, branches: int):
        super().__init__()
        _check(layer)
        copies = [deepcopy(layer) for _ in range(branches - 1)]
        for module in ModuleList(copies).modules():
            if isinstance(module, nn.Linear):
                module.reset_parameters()
        self.branches = ModuleList([layer, *copies])
        self.train(layer.training)  # copies may come from a frozen layer

    @torch.no_grad()
    def fuse(self) -> nn.Module:
        """Return a plain copy with equal outputs in evaluation.

        It has n x h heads, n times the hidden channels, no LayerScale, and
        norms without affine map.
        """
        layer = deepcopy(self.branches[0])
        layer.ln1, _, _ = split_affine(layer.ln1)
        layer.ln2, _, _ = split_affine(layer.ln2)
        attn, ffn = layer.attn, layer.ffn
        number = len(self.branches)
        attn.qkv, attn.proj = _fuse_linear(
            [get_attention(branch) for branch in self.branches]
        )
        attn.num_heads *= number
        attn.embed_dims *= number  # total over all heads
        attn.gamma1 = nn.Identity()
        ffn.layers[0][0], ffn.layers[1] = _fuse_linear(
            [get_ffn(branch) for branch in self.branches]
        )
        ffn.feedforward_channels *= number
        ffn.gamma2 = nn.Identity()
        return layer

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens (B, N, C) to tokens, without a reduction."""
        x = x + attend(self.attn, self.ln1(x))[0]
        return self.ffn(self.ln2(x), identity=x)

    def ln1(self, x: Tensor) -> Tensor:
        """Normalize tokens (B, N, C) without any branch's affine map."""
        return _normalize_only(self.branches[0].ln1, x)

    def ln2(self, x: Tensor) -> Tensor:
        """Return the tokens unchanged: :meth:`ffn` contains the norms."""
        return x

    @property
    def attn(self) -> 'BranchAttention | JoinedAttention':
        """Attention over all branches, an input for :func:`attend`."""
        attention_class = JoinedAttention if self.training else BranchAttention
        return attention_class(self.branches)

    def ffn(self, x: Tensor, identity: Tensor) -> Tensor:
        """Add the outputs of all FFNs, norms included, to ``identity``."""
        if not self.training:
            for layer in self.branches:
                identity = layer.ffn(layer.ln2(x), identity=identity)
            return identity
        first = self.branches[0]
        joined = join_branches([get_ffn(layer) for layer in self.branches])
        x = F.linear(_normalize_only(first.ln2, x), joined.weight, joined.bias)
        x = first.ffn.layers[0][1](x)
        drop_prob = first.ffn.dropout_layer.drop_prob
        return identity + _last_linear(x, joined, drop_prob)


class BranchAttention(ParallelAttention):
    """Attentions of parallel branches, run sequentially."""

    def __init__(self, branches: Sequence[TransformerEncoderLayer]):
        self.branches = branches

    def each(self, x: Tensor) -> Iterator[tuple[nn.Module, Tensor]]:
        """See :class:`ParallelAttention`."""
        for layer in self.branches:
            norm = layer.ln1  # only its affine map is left to apply
            yield layer.attn, torch.addcmul(norm.bias, x, norm.weight)

    def joined(self) -> 'JoinedAttention':
        """See :class:`ParallelAttention`."""
        return JoinedAttention(self.branches)


class JoinedAttention:
    """Attentions of parallel branches as one attention with n x h heads."""

    proj_drop = gamma1 = out_drop = nn.Identity()

    def __init__(self, branches: Sequence[TransformerEncoderLayer]):
        first = branches[0].attn
        self.num_heads = len(branches) * first.num_heads
        self.head_dims = first.head_dims
        self.attn_drop, self.training = first.attn_drop, first.training
        self.drop_prob = first.out_drop.drop_prob * first.training
        self.scaled_dot_product_attention = first.scaled_dot_product_attention
        self.joined = join_branches(
            [get_attention(layer) for layer in branches]
        )

    def qkv(self, x: Tensor) -> Tensor:
        """Map normalized tokens (B, N, C) to (B, N, 3nC)."""
        return F.linear(x, self.joined.weight, self.joined.bias)

    def proj(self, x: Tensor) -> Tensor:
        """Map values from all heads (B, N, nC) to the update (B, N, C)."""
        return _last_linear(x, self.joined, self.drop_prob)


def _normalize_only(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    """Apply a norm without its affine map."""
    return F.layer_norm(x, norm.normalized_shape, eps=norm.eps)


def _last_linear(x: Tensor, joined: JoinedWeights, drop_prob: float) -> Tensor:
    """Apply the last linear layers and sum over the branches.

    Maps (B, N, n I) to (B, N, C). Stochastic depth drops branches with
    ``drop_prob`` and rescales the sum.
    """
    weight, bias = joined.last_weight, joined.last_bias
    if not drop_prob:
        return F.linear(x, weight, bias.sum(dim=0))
    kept = kept_branches(x, len(bias), drop_prob)
    x = x.unflatten(-1, (len(bias), -1)) * kept[:, None, :, None]
    x = F.linear(x.flatten(2), weight) + (kept @ bias)[:, None]
    return x / (1 - drop_prob or 1)  # avoid 0 / 0 if all are dropped


def _check(layer: TransformerEncoderLayer) -> None:
    if layer.attn.proj_drop.p:
        raise Error(
            f'drop_rate={layer.attn.proj_drop.p} is not supported with '
            'branches > 1; use drop_path_rate'
        )
    norms = isinstance(layer.ln1, nn.LayerNorm)
    if not (norms and isinstance(layer.ffn, FFN) and layer.ffn.num_fcs == 2):
        raise Error(
            'branches > 1 needs LayerNorm and an FFN with two linear layers, '
            f'found {type(layer.ln1).__name__} and {type(layer.ffn).__name__}'
        )


def kept_branches(x: Tensor, branches: int, drop_prob: float) -> Tensor:
    """Sample the branches kept by stochastic depth: 1 or 0, (B, n).

    ``x`` provides batch size, dtype and device; each branch of each sample is
    dropped independently.
    """
    return x.new_empty(x.size(0), branches).bernoulli_(1 - drop_prob)
