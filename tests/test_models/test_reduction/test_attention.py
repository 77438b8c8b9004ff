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


def slow_maps(attn, x, bias=None):
    """Compute attention maps (B, H, N, N) by a loop, and return the values."""
    D = C // H
    q, k, v = attn.qkv(x).chunk(3, dim=-1)
    maps = torch.zeros(B, H, N, N, dtype=x.dtype)
    for b in range(B):
        for h in range(H):
            part = slice(h * D, (h + 1) * D)
            for i in range(N):
                logits = [q[b, i, part] @ k[b, j, part] for j in range(N)]
                logits = torch.stack(logits) / D**0.5
                if bias is not None:
                    logits = logits + bias[b, 0, 0]
                maps[b, h, i] = logits.exp() / logits.exp().sum()
    return maps, v


def slow_attend(attn, x, bias=None):
    maps, v = slow_maps(attn, x, bias)
    heads = [
        maps[:, h] @ v[:, :, h * C // H : (h + 1) * C // H] for h in range(H)
    ]
    return attn.proj(torch.cat(heads, dim=-1))


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
    mean = attn.proj(v.mean(dim=1, keepdim=True).expand(-1, N, -1))
    assert torch.allclose(update, mean, atol=1e-12)


@pytest.mark.parametrize('biased', [False, True])
def test_cls_and_received_attention_equal_rows_of_the_map(attn, x, biased):
    """Without dropout."""
    bias = torch.randn(B, 1, 1, N, dtype=x.dtype) if biased else None
    _, attended = attend(attn.train(), x, bias)
    maps, _ = slow_maps(attn, x, bias)
    assert torch.allclose(attended.cls_attn(), maps[:, :, 0])
    for chunk_size in (1, 2, 128):
        received = attended.received(chunk_size)
        assert torch.allclose(received, maps.sum(dim=(1, 2)))
