# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Talking heads against a plain formula; memory in chunks."""

import pytest
import torch
from peak_memory import peak_bytes

from mmclca.models.layers import talking_heads
from mmclca.models.layers.talking_heads import TalkingHeadsAttention
from mmclca.models.reduction.attention import attend
from mmclca.registry import MODELS

B, N, C, H = 2, 7, 24, 4


def tokens():
    return torch.randn(B, N, C, dtype=torch.float64)


def attention(**settings):
    attn = TalkingHeadsAttention(C, H, **settings).double()
    for parameter in attn.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return attn


def slow_weights(attn, x, bias):
    """Mixed weights (B, H, N, N) and values (B, H, N, D)."""
    q, k, v = attn.qkv(x).unflatten(2, (3, H, C // H)).unbind(2)
    logits = torch.einsum('bihd,bjhd->bhij', q, k) / (C // H) ** 0.5
    first, second = attn.mix_logits, attn.mix_weights
    logits = torch.einsum('gh,bhij->bgij', first.weight, logits)
    logits = logits + first.bias[:, None, None] + bias
    weights = logits.exp() / logits.exp().sum(-1, keepdim=True)
    weights = torch.einsum('gh,bhij->bgij', second.weight, weights)
    weights = weights + second.bias[:, None, None] * bias.exp()
    return weights, v.transpose(1, 2)


@pytest.mark.parametrize('biased', [False, True])
def test_attention_equals_formula(monkeypatch, biased):
    monkeypatch.setattr(talking_heads, 'CHUNK_SIZE', 3)
    attn, x = attention(layer_scale_init_value=0.1), tokens()
    bias = torch.randn(B, 1, 1, N).double() if biased else None
    weights, v = slow_weights(attn, x, bias if biased else torch.zeros(1))
    read = attn.proj((weights @ v).transpose(1, 2).flatten(2))
    out, attended = attend(attn, x, bias)
    torch.testing.assert_close(out, attn.gamma1(read))
    # inputs of reducers
    torch.testing.assert_close(attended.cls_attn(), weights[:, :, 0])
    torch.testing.assert_close(
        attended.received(chunk_size=2), weights.sum(dim=(1, 2))
    )


def test_chunks_bound_memory_to_1_5_times_plain_vit(monkeypatch):
    arch = dict(
        embed_dims=96, num_layers=2, num_heads=2, feedforward_channels=384
    )
    x = torch.randn(1, 3, 384, 384)
    plain, cait = (
        MODELS.build(
            dict(type=f'mmclca.{name}', arch=arch, img_size=384)
        ).eval()
        for name in ('TokenReductionViT', 'CaiT')
    )
    bound = 1.5 * peak_bytes(plain, x)
    assert peak_bytes(cait, x) < bound
    monkeypatch.setattr(talking_heads, 'CHUNK_SIZE', 577)
    assert peak_bytes(cait, x) > 2 * bound  # without chunks
