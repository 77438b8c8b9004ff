# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The layers of timm's vision transformers, run in parts."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from timm.models import vision_transformer as vit
from torch import Tensor, nn
from torch.nn import functional

from ..reduction.attention import Attended, DiffAttended, JoinedAttended
from .base import LayerFunctions
from .calls import AttentionInputs, call, call_attention
from .timm_versions import DIFF_ATTENTIONS, DIFF_BLOCKS

ARGUMENTS = dict(attn_mask='key_bias')  # of timm's attention
DIFFERENTIAL = DIFF_ATTENTIONS + DIFF_BLOCKS


def split_heads(attn: Any, qkv: Sequence[Tensor], key_bias) -> Attended:
    """Split queries, keys and values (B, N, C) by heads, and normalize."""
    heads = attn.num_heads * (1 + isinstance(attn, DIFFERENTIAL))
    B, N = qkv[0].shape[:2]
    q, k, v = (
        y.reshape(B, N, number, -1).transpose(1, 2)
        for y, number in zip(qkv, (heads, heads, attn.num_heads), strict=True)
    )
    q, k = attn.q_norm(q), attn.k_norm(k)
    if heads == attn.num_heads:
        return Attended(q, k, v, key_bias)
    return DiffAttended(q, k, v, key_bias, attn._compute_lambda().type_as(q))


def weighted(attn: Any, attended: Attended, softmax) -> Tensor:
    """Return the weighted values of all heads, (B, N, C).

    As in timm, ``attn_drop`` gets the attention maps (B, H, N, N) only if the
    attention is not fused; here, also if it has hooks.
    """
    drop = attn.attn_drop
    if not attn.fused_attn or drop._forward_hooks or drop._forward_pre_hooks:
        softmax = partial(_weigh_and_drop, drop, softmax)
    x = attended.values(softmax, drop.p if attn.training else 0.0)
    if isinstance(attn, DIFFERENTIAL):
        x = attn.sub_norm(x) * (1 - attn.lambda_init)
    return x.transpose(1, 2).flatten(2)


def _weigh_and_drop(
    drop: nn.Module, softmax: Callable | None, logits: Tensor
) -> Tensor:
    weights = softmax(logits) if softmax else logits.softmax(dim=-1)
    return drop(weights)


def find_attention(attn: nn.Module) -> Any:
    """Return an attention itself, or the attention in a wrapper."""
    return next(part for part in attn.modules() if hasattr(part, 'qkv'))


def _project(attn: nn.Module, x: Tensor, inputs: AttentionInputs) -> Attended:
    """Return queries, keys and values of an attention or its wrapper."""
    attn = find_attention(attn)
    return split_heads(attn, attn.qkv(x).chunk(3, dim=2), inputs.key_bias)


def project_block(layer: Any, x: Tensor, inputs: AttentionInputs) -> Attended:
    """Return queries, keys and values of a ``Block``."""
    return _project(layer.attn, x, inputs)


def attend_block(
    layer: Any, x: Tensor, inputs: AttentionInputs
) -> tuple[Tensor, Attended]:
    """Run the attention of a ``Block``."""
    return _call(layer.attn, x, inputs)


def _call(
    attn: nn.Module, x: Tensor, inputs: AttentionInputs
) -> tuple[Tensor, Attended]:
    """Call timm's ``Attention`` or ``DiffAttention``."""
    return call_attention(attn, x, _attend, inputs, ARGUMENTS)


def _attend(
    attn: nn.Module, x: Tensor, inputs: AttentionInputs
) -> tuple[Tensor, Attended]:
    """Run timm's ``Attention`` or ``DiffAttention``."""
    attended = _project(attn, x, inputs)
    return finish_attention(attn, x, attended, inputs.softmax), attended


def finish_attention(
    attn: Any, x: Tensor, attended: Attended, softmax: Callable | None
) -> Tensor:
    """Return the output of an attention, (B, N, C).

    Args:
        attn (nn.Module): The attention.
        x (Tensor): Its input, (B, N, C).
        attended (Attended): Its queries, keys and values.
        softmax (Callable, optional): See :meth:`TokenReducer.softmax`.
    """
    y = weighted(attn, attended, softmax)
    parts = attn._modules  # norm since timm 1.0.16, gate after 1.0.27
    if 'norm' in parts:
        y = parts['norm'](y)
    if parts.get('gate') is not None:
        y = y * parts['gate'](x).sigmoid()
    return attn.proj_drop(attn.proj(y))


def project_branches(
    layer: Any, x: Tensor, inputs: AttentionInputs
) -> Attended:
    """Return queries, keys and values of a ``ParallelThingsBlock``."""
    return JoinedAttended(
        [
            _project(branch.attn, branch.norm(x), inputs)
            for branch in layer.attns
        ]
    )


def attend_branches(
    layer: Any, x: Tensor, inputs: AttentionInputs
) -> tuple[Tensor, Attended]:
    """Run the attentions of a ``ParallelThingsBlock`` with their norms."""

    def attend(branch, x):
        y, attended = _call(branch.attn, branch.norm(x), inputs)
        return branch.drop_path(branch.ls(y)), attended

    branches = [call(branch, x, attend) for branch in layer.attns]
    updates = [update for update, _ in branches]
    return sum(updates), JoinedAttended([part for _, part in branches])


def project_in(layer: Any, x: Tensor) -> tuple[Tensor, ...]:
    """Return the projected parts in a ``ParallelScalingBlock``.

    These are hidden features of the FFN, queries, keys and values. Before
    timm 1.0.25, a layer without ``in_proj.bias`` adds ``mlp_bias`` to the last
    channels, queries, keys and values, instead of the first ones.
    """
    zeros = layer._buffers.get('qkv_bias')
    if zeros is not None:
        bias = torch.cat((zeros, layer.mlp_bias))
        y = functional.linear(x, layer.in_proj.weight, bias)
        return y.split(layer.in_split, dim=-1)
    hidden, *qkv = layer.in_proj(x).split(layer.in_split, dim=-1)
    if layer.mlp_bias is not None:
        hidden = hidden + layer.mlp_bias
    return hidden, *qkv


def project_fused(
    layer: nn.Module, x: Tensor, inputs: AttentionInputs
) -> Attended:
    """Return queries, keys and values of a ``ParallelScalingBlock``."""
    _, *qkv = project_in(layer, x)
    return split_heads(layer, qkv, inputs.key_bias)


def attend_and_feed(
    layer: nn.Module, x: Tensor, inputs: AttentionInputs
) -> tuple[Tensor, Attended]:
    """Run a ``ParallelScalingBlock``, also with differential attention.

    As attention and FFN are parallel, tokens are reduced after both.
    """
    hidden, *qkv = project_in(layer, x)
    attended = split_heads(layer, qkv, inputs.key_bias)
    y = weighted(layer, attended, inputs.softmax)
    hidden = layer.mlp_drop(layer.mlp_act(hidden))
    out_proj = layer._modules.get('out_proj')  # since timm 1.0.24
    if out_proj is not None:
        return out_proj(torch.cat((y, hidden), dim=-1)), attended
    return layer.attn_out_proj(y) + layer.mlp_out_proj(hidden), attended


def same(layer: nn.Module, x: Tensor) -> Tensor:
    """Return the second argument."""
    return x


SCALING = LayerFunctions(
    lambda x, y: x.in_norm(y),
    project_fused,
    attend_and_feed,
    lambda x, y: x.drop_path(x.ls(y)),
    same,
)
VIT_FUNCTIONS = {
    vit.Block: LayerFunctions(
        lambda x, y: x.norm1(y),
        project_block,
        attend_block,
        lambda x, y: x.drop_path1(x.ls1(y)),
        lambda x, y: y + x.drop_path2(x.ls2(x.mlp(x.norm2(y)))),
    ),
    vit.ResPostBlock: LayerFunctions(
        same,
        project_block,
        attend_block,
        lambda x, y: x.drop_path1(x.norm1(y)),
        lambda x, y: y + x.drop_path2(x.norm2(x.mlp(y))),
    ),
    vit.ParallelThingsBlock: LayerFunctions(
        same,
        project_branches,
        attend_branches,
        same,
        lambda x, y: y + sum(ffn(y) for ffn in x.ffns),
    ),
    vit.ParallelScalingBlock: SCALING,
}
VIT_FUNCTIONS |= dict.fromkeys(DIFF_BLOCKS, SCALING)
