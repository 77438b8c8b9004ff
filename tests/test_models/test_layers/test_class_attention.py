# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmclca.models.layers.class_attention import ClassAttention, ClassLayer


def tokens(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def class_layer(**settings):
    torch.manual_seed(1)
    settings = dict(
        embed_dims=24,
        num_heads=4,
        feedforward_channels=48,
        qkv_bias=True,
        norm_cfg=dict(type='LN', eps=1e-6),
        layer_scale_init_value=0.5,
        **settings,
    )
    return ClassLayer(**settings).double().eval()


def test_output_equals_weighted_values():
    attn = ClassAttention(24, 4).double()
    cls, x = tokens(2, 3, 24).double(), tokens(2, 7, 24).double() + 1
    bias = tokens(2, 1, 1, 7).double()
    weights = attn.weights(cls, x, bias)
    assert weights.shape == (2, 4, 3, 7)
    torch.testing.assert_close(
        weights.sum(-1), torch.ones_like(weights[..., 0])
    )
    v = attn.v(x).unflatten(2, (4, 6)).transpose(1, 2)
    read = attn.proj((weights @ v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(attn(cls, x, bias), read)


def test_queries_are_keys_only_with_cls_key():
    cls, x = tokens(2, 3, 24).double(), tokens(2, 7, 24).double()
    assert class_layer().weights(cls, x).shape == (2, 4, 3, 10)
    own = class_layer(with_cls_key=False)
    assert own.weights(cls, x).shape == (2, 4, 3, 7)
    # without other queries among the keys, queries are independent
    torch.testing.assert_close(own(cls, x)[:, 1:2], own(cls[:, 1:2], x))


@pytest.mark.parametrize('with_cls_key', [True, False])
def test_log_two_as_key_bias_equals_duplicate_patch(with_cls_key):
    layer = class_layer(with_cls_key=with_cls_key)
    cls, x = tokens(2, 1, 24).double(), tokens(2, 7, 24).double()
    twice = torch.cat((x, x[:, -1:]), dim=1)
    bias = x.new_tensor([0, 0, 0, 0, 0, 0, 2]).clamp(min=1).log()
    bias = bias.expand(2, 1, 1, 7)
    torch.testing.assert_close(layer(cls, x, bias), layer(cls, twice))
