# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Class attention, and talking heads against a plain formula."""

import pytest
import torch
from peak_memory import peak_bytes

from mmclca.models.layers import talking_heads
from mmclca.models.layers.class_attention import ClassAttention, ClassLayer
from mmclca.models.layers.talking_heads import TalkingHeadsAttention
from mmclca.models.reduction.attention import attend
from mmclca.registry import MODELS

B, N, C, H = 2, 7, 24, 4


def tokens(number=N):
    return torch.randn(B, number, C, dtype=torch.float64)


def class_layer(**settings):
    norm = dict(type='LN', eps=1e-6)
    settings.update(qkv_bias=True, norm_cfg=norm, layer_scale_init_value=0.5)
    return ClassLayer(C, H, 2 * C, **settings).double().eval()


def test_class_attention_equals_weighted_values():
    attn, cls, x = ClassAttention(C, H).double(), tokens(3), tokens() + 1
    bias = torch.randn(B, 1, 1, N).double()
    weights = attn.weights(cls, x, bias)
    assert weights.shape == (B, H, 3, N)
    torch.testing.assert_close(
        weights.sum(-1), torch.ones_like(weights[..., 0])
    )
    v = attn.v(x).unflatten(2, (H, C // H)).transpose(1, 2)
    read = attn.proj((weights @ v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(attn(cls, x, bias), read)


def test_queries_are_keys_only_with_cls_key():
    cls, x = tokens(3), tokens()
    assert class_layer().weights(cls, x).shape == (B, H, 3, 3 + N)
    own = class_layer(with_cls_key=False)
    assert own.weights(cls, x).shape == (B, H, 3, N)
    # without other queries among the keys, queries are independent
    torch.testing.assert_close(own(cls, x)[:, 1:2], own(cls[:, 1:2], x))


@pytest.mark.parametrize('with_cls_key', [True, False])
def test_log_two_as_key_bias_equals_duplicate_patch(with_cls_key):
    layer, cls, x = class_layer(with_cls_key=with_cls_key), tokens(1), tokens()
    twice = torch.cat((x, x[:, -1:]), dim=1)
    bias = x.new_zeros(B, 1, 1, N)
    bias[..., -1] = torch.tensor(2.0).log()
    torch.testing.assert_close(layer(cls, x, bias), layer(cls, twice))


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
def test_talking_heads_equal_formula(monkeypatch, biased):
    monkeypatch.setattr(talking_heads, 'CHUNK_SIZE', 3)
    attn = TalkingHeadsAttention(C, H, layer_scale_init_value=0.1).double()
    for parameter in attn.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    x, bias = tokens(), torch.randn(B, 1, 1, N).double() if biased else None
    weights, v = slow_weights(attn, x, bias if biased else torch.zeros(1))
    read = attn.proj((weights @ v).transpose(1, 2).flatten(2))
    out, attended = attend(attn, x, bias)
    torch.testing.assert_close(out, attn.gamma1(read))
    if not biased:
        torch.testing.assert_close(attn(x), out)
    # inputs of reducers
    torch.testing.assert_close(attended.cls_attn(), weights[:, :, 0])
    torch.testing.assert_close(
        attended.received(chunk_size=2), weights.sum(dim=(1, 2))
    )


def test_chunks_bound_memory_to_1_5_times_plain_vit(monkeypatch):
    arch = dict(embed_dims=96, num_layers=2, num_heads=2)
    sizes = dict(arch=dict(arch, feedforward_channels=384), img_size=384)
    x = torch.randn(1, 3, 384, 384)
    plain, cait = (
        MODELS.build(dict(sizes, type=f'mmclca.{name}')).eval()
        for name in ('TokenReductionViT', 'CaiT')
    )
    bound = 1.5 * peak_bytes(plain, x)
    assert peak_bytes(cait, x) < bound
    monkeypatch.setattr(talking_heads, 'CHUNK_SIZE', 577)
    assert peak_bytes(cait, x) > 2 * bound  # without chunks
