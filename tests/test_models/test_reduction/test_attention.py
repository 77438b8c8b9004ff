# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmpretrain.models.utils import MultiheadAttention

from mmclca.models.reduction.attention import attend

B, N, C, H = 2, 5, 8, 2


@pytest.fixture
def attn():
    return MultiheadAttention(C, H, attn_drop=0.9).double().eval()


@pytest.fixture
def x():
    return torch.randn(B, N, C, dtype=torch.float64)


def slow_maps(attn, x, bias=0):
    """Compute attention maps (B, H, N, N), and return the values."""
    qkv = attn.qkv(x).unflatten(-1, (3, H, C // H))
    q, k, v = qkv.permute(2, 0, 3, 1, 4)
    logits = torch.einsum('bhid,bhjd->bhij', q, k) / (C // H) ** 0.5 + bias
    return logits.exp() / logits.exp().sum(dim=-1, keepdim=True), v


def slow_attend(attn, x, bias):
    maps, v = slow_maps(attn, x, bias)
    return attn.proj((maps @ v).transpose(1, 2).flatten(2))


@pytest.mark.parametrize('train', [False, True])
def test_attend_equals_mmpretrain(train):
    attn = MultiheadAttention(
        C,
        H,
        attn_drop=0.3,
        proj_drop=0.2,
        dropout_layer=dict(type='DropPath', drop_prob=0.4),
        qkv_bias=False,
        layer_scale_init_value=0.1,
    ).train(train)
    x = torch.randn(B, N, C)
    torch.manual_seed(1)
    expected = attn(x)
    torch.manual_seed(1)
    assert torch.equal(attend(attn, x)[0], expected)


def test_key_bias_equals_loop_and_explicit_softmax(attn, x):
    bias = torch.randn(B, 1, 1, N, dtype=x.dtype)
    bias[..., 3] = -torch.inf
    fused, _ = attend(attn, x, bias)
    assert torch.allclose(fused, slow_attend(attn, x, bias), atol=1e-12)
    explicit, _ = attend(attn, x, bias, softmax=lambda a: a.softmax(-1))
    assert torch.allclose(explicit, fused, atol=1e-12)


def test_custom_softmax_gets_scaled_logits(attn, x):
    seen = []

    def uniform(logits):
        seen.append(logits)
        return torch.full_like(logits, 1 / N)

    update, _ = attend(attn, x, softmax=uniform)
    maps, v = slow_maps(attn, x)
    assert torch.allclose(seen[0].softmax(-1), maps, atol=1e-12)
    mean = attn.proj(v.mean(dim=2).flatten(1))
    assert torch.allclose(update, mean[:, None], atol=1e-12)


@pytest.mark.parametrize('biased', [False, True])
def test_cls_and_received_attention_equal_rows_of_the_map(attn, x, biased):
    """Without dropout."""
    bias = torch.randn(B, 1, 1, N, dtype=x.dtype) if biased else None
    _, attended = attend(attn.train(), x, bias)
    maps, _ = slow_maps(attn, x, bias if biased else 0)
    assert torch.allclose(attended.cls_attn(), maps[:, :, 0])
    for chunk_size in (1, 2, 128):
        received = attended.received(chunk_size)
        assert torch.allclose(received, maps.sum(dim=(1, 2)))
