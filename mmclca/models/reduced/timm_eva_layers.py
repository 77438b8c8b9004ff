# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The layers of timm's ``Eva``, run in parts."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from timm.models import eva
from torch import Tensor, nn

from ..reduction.attention import Attended
from .base import LayerFunctions
from .calls import AttentionInputs, call_attention
from .timm_layers import find_attention, finish_attention, same

ARGUMENTS = dict(attn_mask='key_bias', rope='rotary')  # of the attention


def _project_channels(attn: Any, x: Tensor) -> Sequence[Tensor]:
    """Return queries, keys and values, (B, N, H x D)."""
    if attn.qkv is None:
        return attn.q_proj(x), attn.k_proj(x), attn.v_proj(x)
    q_bias = attn._parameters.get('q_bias')  # of EvaAttention
    if q_bias is None:
        return attn.qkv(x).chunk(3, dim=2)
    bias = torch.cat((q_bias, attn.k_bias, attn.v_bias))
    if attn.qkv_bias_separate:
        return (attn.qkv(x) + bias).chunk(3, dim=2)
    return F.linear(x, attn.qkv.weight, bias).chunk(3, dim=2)


def _project(attn: nn.Module, x: Tensor, inputs: AttentionInputs) -> Attended:
    """Return queries, keys and values of an attention or its wrapper."""
    attn = find_attention(attn)
    q, k, v = _project_channels(attn, x)
    q = q.unflatten(2, (attn.num_heads, -1)).transpose(1, 2)
    k, v = (y.unflatten(2, (-1, q.size(3))).transpose(1, 2) for y in (k, v))
    norms = attn._modules
    if 'q_norm' in norms:  # since timm 1.0.15
        q, k = norms['q_norm'](q), norms['k_norm'](k)
    groups = attn.num_heads // k.size(1)
    if groups > 1:  # heads with shared keys and values
        k, v = (y.repeat_interleave(groups, dim=1) for y in (k, v))
    return inputs.attended(q, k, v)


def project_eva(layer: Any, x: Tensor, inputs: AttentionInputs) -> Attended:
    """Return queries, keys and values in a layer."""
    return _project(layer.attn, x, inputs)


def attend_eva(
    layer: Any, x: Tensor, inputs: AttentionInputs
) -> tuple[Tensor, Attended]:
    """Run the attention in a layer."""
    return call_attention(layer.attn, x, _attend, inputs, ARGUMENTS)


def _attend(
    attn: nn.Module, x: Tensor, inputs: AttentionInputs
) -> tuple[Tensor, Attended]:
    """Run timm's ``EvaAttention`` or ``AttentionRope``."""
    attended = _project(attn, x, inputs)
    return finish_attention(attn, x, attended, inputs.softmax), attended


def scale_attention(layer: Any, y: Tensor) -> Tensor:
    """Return the attention update in an ``EvaBlock``."""
    if layer.gamma_1 is not None:
        y = layer.gamma_1 * y
    return layer.drop_path1(y)


def feed(layer: Any, x: Tensor) -> Tensor:
    """Run the FFN in an ``EvaBlock``."""
    y = layer.mlp(layer.norm2(x))
    if layer.gamma_2 is not None:
        y = layer.gamma_2 * y
    return x + layer.drop_path2(y)


EVA_FUNCTIONS = {
    eva.EvaBlock: LayerFunctions(
        lambda x, y: x.norm1(y), project_eva, attend_eva, scale_attention, feed
    ),
    eva.EvaBlockPostNorm: LayerFunctions(
        same,
        project_eva,
        attend_eva,
        lambda x, y: x.drop_path1(x.norm1(y)),
        lambda x, y: y + x.drop_path2(x.norm2(x.mlp(y))),
    ),
}
