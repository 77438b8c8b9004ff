# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from unittest.mock import patch

import pytest
import torch
from small_models import REDUCE_AT, build, vit
from toy_reducers import shape

from mmclca.models import CrossLayerCache
from mmclca.models.reduction.attention import Attended
from mmclca.models.reduction.reducers import ATS
from mmclca.models.reduction.reducers.ats import sample, significance
from mmclca.models.reduction.tokens import Tokens


def slow_sample(cdf, num_tokens):
    """Return the tokens nearest to a point, first on ties."""
    K = num_tokens + 1
    points = torch.arange(1 / (2 * K), (2 * K - 1) / (2 * K), 1 / K)
    found = set()
    for point in points.tolist():
        distances = [abs(point - value) for value in cdf]
        found.add(distances.index(min(distances)))
    return sorted(found)


def sampled(cdf, num_tokens):
    taken = sample(torch.tensor([cdf], dtype=torch.float64), num_tokens)
    return taken[0].nonzero().flatten().tolist()


@pytest.mark.parametrize('num_tokens', [1, 2, 3, 7, 18])
def test_sample_equals_loop_without_padding(num_tokens):
    for scores in torch.rand(20, 9).double() ** 4:
        cdf = (scores.cumsum(0) / scores.sum()).tolist()
        expected = slow_sample(cdf, num_tokens)
        assert sampled(cdf, num_tokens) == expected
        padded = [-torch.inf] * 3 + cdf
        assert sampled(padded, num_tokens) == [3 + i for i in expected]


@pytest.mark.parametrize(
    'cdf, num_tokens, expected',
    [
        ([0.125, 0.375, 0.875, 1.0], 1, [0]),  # the point is 0.25
        ([0.25, 0.25, 0.25, 0.5, 0.5, 1.0, 1.0], 8, [0, 3, 5]),
        ([0.9, 0.95, 1.0], 3, [0]),
        ([0.0, 0.01, 0.02], 3, [2]),
        ([1.0], 4, [0]),
    ],
)
def test_sample_selects_first_token_if_distances_tie(
    cdf, num_tokens, expected
):
    assert sampled(cdf, num_tokens) == expected


def test_significance_is_summed_in_float32():
    q, k, v = torch.randn(3, 1, 2, 800, 4).bfloat16().unbind(0)
    score = significance(Attended(q, k, v))
    assert score.dtype == torch.float32
    assert score.sum().item() == pytest.approx(1, abs=1e-4)


def attended(*rows):
    """Attention with these CLS shares for the tokens after CLS."""
    share = torch.tensor(rows).double()
    share = torch.cat((torch.ones_like(share[:, :1]), share), dim=1)
    q = torch.ones(*share.shape, 1)[:, None].double()
    return Attended(q, share.log()[:, None, :, None], q)


# the first image needs one token, the second needs all
UNEVEN = ([0.97, 0.01, 0.01, 0.01], [0.1, 0.2, 0.09, 0.61])


def uneven():
    """Build a reducer, and two images that keep 1 and 4 of 4 tokens."""
    x = torch.randn(2, 5, 3).double()
    reducer = ATS(num_tokens=[4], backbone=shape(num_patches=4, num_stages=1))
    return reducer, Tokens(x, num_pooled=5, num_patches=4)


def test_ats_pads_after_cls():
    reducer, tokens = uneven()
    kept = reducer.after_attention(tokens, attended(*UNEVEN), 0)
    assert kept.weight.tolist() == [[1, 0, 0, 0, 1], [1, 1, 1, 1, 1]]
    assert torch.equal(kept.features[0, 4], tokens.features[0, 1])
    assert torch.equal(
        kept.features[0, :4], tokens.features[0, :1].expand(4, -1)
    )
    assert torch.equal(kept.features[1], tokens.features[1])
    alone = reducer.after_attention(
        Tokens(tokens.features[:1], num_patches=4), attended(UNEVEN[0]), 0
    )
    assert torch.equal(alone.features[0], tokens.features[0, :2])


def test_padding_gets_no_attention_and_is_not_in_the_cache_average():
    reducer, tokens = uneven()
    kept = reducer.after_attention(tokens, attended(*UNEVEN), 0)
    bias = reducer.key_bias(kept)
    q, k, v = torch.randn(3, 2, 2, 5, 3).double().unbind(0)
    weights = Attended(q, k, v, bias).cls_attn()
    alone = Attended(*(t[:1, :, [0, 4]] for t in (q, k, v))).cls_attn()
    assert torch.allclose(weights[0][:, [0, 4]], alone[0])
    assert (weights[1] > 0).all()
    average = CrossLayerCache(embed_dims=3).entry(kept)[0]
    assert torch.equal(average[0, 0], tokens.features[0, 1])
    assert torch.allclose(average[1, 0], tokens.features[1, 1:].mean(0))
    rows = torch.eye(5)[None, :, 1:].expand(2, -1, -1)
    weights = kept.trace[0].apply(rows)
    assert weights[0].tolist() == [[0] * 4] * 4 + [[1, 0, 0, 0]]


def test_ats_never_samples_padding_in_later_stages():
    reducer, tokens = uneven()
    kept = reducer.after_attention(tokens, attended(*UNEVEN), 0)
    longer = kept.append(torch.randn(2, 1, 3).double())
    seen = attended([0, 0, 0, 0.3, 0.7], [0.1, 0.2, 0.09, 0.31, 0.3])
    seen.key_bias = reducer.key_bias(longer)
    again = reducer.after_attention(longer, seen, 0)
    assert again.weight.tolist() == [[1, 0, 0, 1, 1], [1, 1, 1, 1, 1]]
    assert torch.equal(again.features[0, -2:], longer.features[0, -2:])
    assert torch.equal(again.features[1], longer.features[1, :5])


def test_ats_length_is_fixed_if_compiled():
    reducer, tokens = uneven()
    reducer.num_tokens = [2]
    seen = attended(UNEVEN[0], UNEVEN[0])
    assert reducer.after_attention(tokens, seen, 0).features.size(1) == 2
    with patch.object(torch.compiler, 'is_compiling', lambda: True):
        fixed = reducer.after_attention(tokens, seen, 0)
    assert fixed.features.size(1) == 1 + 3  # rounding may add one point
    assert fixed.weight.tolist() == [[1, 0, 0, 1]] * 2


def test_sample_returns_tokens_if_values_are_nan():
    values = torch.tensor([[torch.nan] * 4, [0.1, 0.5, torch.nan, torch.nan]])
    assert sample(values, 3).shape == (2, 4)


@torch.no_grad()
def test_ats_handles_float16_overflow():
    reducer = dict(type='mmclca.ATS', keep_rate=0.5)
    model = build(vit(reducer=reducer, reduce_at=REDUCE_AT)).eval()
    x = torch.full((1, 3, 32, 32), 1e4, dtype=torch.float16)
    assert model.half()(x)[-1].shape == (1, 16)
