# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ATC, DiffRate, MCTF, PiToMe, PPT, and ToFu as options of ToMe."""

from unittest.mock import patch

import pytest
import torch
from mmpretrain.structures import DataSample
from small_models import CACHE, build, classifier, images, token_counts, vit
from toy_reducers import shape

from mmclca.models.reduction import learned_counts
from mmclca.models.reduction.attention import Attended
from mmclca.models.reduction.prune_merge import prune_and_merge
from mmclca.models.reduction.reducers import MCTF, DiffRate
from mmclca.models.reduction.reducers.tome import norm_of_largest
from mmclca.models.reduction.tokens import Tokens
from mmclca.registry import MODELS


def reduced(reduce_at=(1, 2), cache=None, **reducer):
    """Build a backbone with 16 patches and three layers."""
    reducer['type'] = f'mmclca.{reducer["type"]}'
    options = dict(reduce_at=reduce_at, reducer=reducer, cache=cache)
    return build(vit(3, **options)).eval()


def left(backbone):
    """Return output tokens per layer."""
    with torch.no_grad():
        return [n for _, n in token_counts(backbone, images(2))]


@pytest.mark.parametrize('name', ['ATC', 'DiffRate'])
def test_counts_are_exact_without_cached_tokens(name):
    assert left(reduced(type=name, keep_rate=0.25)) == [17, 5, 2]
    # plus the CLR token, then average and CLR token of the first layer
    with_cache = reduced(type=name, keep_rate=0.25, cache=CACHE)
    assert left(with_cache) == [18, 6, 6 + 2 - 3]


@pytest.mark.parametrize('name', ['MCTF', 'ToMe'])
def test_halving_reducer_removes_at_most_half(name):
    assert left(reduced(type=name, keep_rate=0.25)) == [17, 9, 6]


@pytest.mark.parametrize('name', ['ATC', 'PiToMe', 'PPT'])
def test_sizes_bias_attention_if_prop_attn(name):
    outs = []
    x = images(2)
    for prop_attn in (True, False):
        torch.manual_seed(1)
        model = reduced(type=name, num_tokens=[9, 5], prop_attn=prop_attn)
        with torch.no_grad():
            (out,), tokens = model.forward_tokens(x)
        bias = model.reducer.key_bias(tokens)
        assert (bias is not None) == prop_attn
        outs.append(out)
    assert not torch.allclose(*outs)


def test_ppt_prunes_or_pools_by_image():
    x = images(6).double()
    model = reduced(type='PPT', keep_rate=0.6, threshold=0.0).double()
    with torch.no_grad():
        model.reducer.threshold = 0.0
        pruned = model.forward_tokens(x)[0][0]
        model.reducer.threshold = 1e9
        pooled = model.forward_tokens(x)[0][0]
        model.reducer.threshold = 0.35
        _, tokens = model.forward_tokens(x)
        out = model(x)[0]
        alone = torch.cat([model(one[None])[0] for one in x])
    assert not torch.isclose(pruned, pooled).all(dim=1).any()
    torch.testing.assert_close(out, alone, rtol=0, atol=1e-12)
    # dropped tokens do not count in sizes
    assert tokens.weight.sum(dim=1).unique().numel() > 1


def test_tofu_drops_early_and_merges_late():
    x, options = images(2), dict(early='prune', merge='mlerp')
    model = reduced(type='ToMe', keep_rate=0.6, reduce_at=(0, 2), **options)
    with torch.no_grad():
        _, tokens = model.forward_tokens(x)
    assert tokens.weight is None
    early, late = (record.share for record in tokens.trace)
    assert set(early.unique().tolist()) == {0, 1} and late.min() > 0


def test_diffrate_learns_counts():
    """Tokens are masked in training, removed in evaluation."""
    reducer = dict(type='mmclca.DiffRate', target=1e-4, granularity=2)
    config = vit(4, reducer=reducer, reduce_at=(1, 3), cache=CACHE)
    model = MODELS.build(classifier(config)).train()
    samples = [DataSample().set_gt_label(i) for i in range(3)]
    losses = model(images(3), samples, mode='loss')
    sum(losses.values()).backward()
    rates = model.backbone.reducer.stages
    assert losses['loss_flops'] > 0
    assert all(p.grad.isfinite().all() for p in rates.parameters())
    assert rates[0].prune.logits.grad.any()
    steps = [model.backbone.reducer.steps(stage) for stage in (0, 1)]
    assert steps == [(9, 9)] * 2  # the mean of 16, 14, ..., 2
    with torch.no_grad():
        for p in (rates[1].prune, rates[1].merge):
            p.logits[-2] = 9.0  # 4
        assert left(model.eval().backbone)[1] == 1 + 1 + 9
    steps = [model.backbone.reducer.steps(stage) for stage in (0, 1)]
    assert steps[1] == (5, 5)  # rounded up
    with torch.no_grad():
        rates[0].merge.logits[-1] = 9.0  # 2; the next stage cannot exceed it
        assert model.backbone.reducer.steps(1) == (5, 3)
    exporting = patch.object(learned_counts, 'is_exporting', lambda: True)
    with exporting, pytest.raises(ValueError, match='fixed counts'):
        left(model.eval().backbone)
    with pytest.raises(ValueError, match='DiffRate has a loss'):
        model.train().backbone(images(1))


def test_diffrate_counts_are_fixed_if_set():
    model = reduced(type='DiffRate', prune=[12, 6], merge=[8, 8])
    assert left(model) == [17, 9, 7]
    assert not model.reducer.has_loss


def test_mctf_is_finite_if_tokens_receive_no_attention():
    q, k = 60 * torch.ones(2, 1, 1, 9, 4).half()
    k[:, :, :3] *= -1
    tokens = Tokens(torch.randn(1, 9, 4).half(), num_patches=8)
    reducer = MCTF(num_tokens=[4], backbone=shape(num_patches=8, num_stages=1))
    tokens = reducer.before_attention(tokens, Attended(q, k, k), 0)
    assert tokens.features.isfinite().all()


def test_diffrate_sizes_are_positive_if_tokens_are_zero():
    tokens = Tokens(torch.zeros(1, 5, 4).half(), num_patches=4)
    left = prune_and_merge(tokens, torch.rand(1, 4), 3, 2, clamp=True)
    assert (left.weight > 0).all()


def test_tofu_gradients_are_finite_if_tokens_are_zero():
    x = torch.zeros(1, 4, 2, requires_grad=True)
    target, left = torch.tensor([[0, 1, 2, 2]]), torch.tensor([[1, 1, 1, 0]])
    norm_of_largest(x, target, left, 3).sum().backward()
    assert x.grad.isfinite().all()


def test_diffrate_sizes_are_positive_without_clamp():
    reducer = DiffRate(
        num_tokens=[1], backbone=shape(num_patches=4, num_stages=1)
    )
    assert reducer.clamp
    for seed in range(5):
        torch.manual_seed(seed)
        model = reduced(type='DiffRate', num_tokens=[2, 1], clamp=False)
        with torch.no_grad():
            _, tokens = model.forward_tokens(images(8))
        assert (tokens.weight > 0).all() and tokens.features.isfinite().all()
