# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Intermediate features, masks and graphs of reduced models of timm."""

from itertools import product

import pytest
import torch
from installed import needs
from small_timm import photos, small_timm
from timm.models._features import FeatureGetterNet
from timm.utils import AttentionExtract

import mmclca

SLOW = pytest.mark.slow
EXACT = dict(rtol=0, atol=1e-10)
FLAGS = 'return_prefix_tokens', 'norm', 'intermediates_only', 'output_dict'


def flat(features):
    """Return the tensors in nested features, in order."""
    if isinstance(features, torch.Tensor):
        return [features]
    if isinstance(features, dict):
        features = [features[name] for name in sorted(features)]
    return [y for part in features for y in flat(part)]


@pytest.mark.parametrize(
    'kind',
    [
        'dynamic',
        *(pytest.param(x, marks=SLOW) for x in ('registers', 'no_cls')),
    ],
)
@needs('timm', '1.0.16')
@torch.no_grad()
def test_intermediates_equal_timm_if_nothing_is_reduced(kind):
    model = small_timm(kind)
    images = photos(model, batch=2)
    same = mmclca.reduce_tokens(model, 'ToMe', 1.0)
    plain = mmclca.reduce_tokens(model, None)
    every = product(*4 * [(False, True)], ('NCHW', 'NLC'))
    for *flags, layout in [*every][:: 1 if kind == 'registers' else 7]:
        options = dict(zip(FLAGS, flags, strict=True), output_fmt=layout)
        expected = model.forward_intermediates(images, [1, 3], **options)
        for reduced in (same, plain):
            features = reduced.forward_intermediates(images, [1, 3], **options)
            assert type(features) is type(expected)
            torch.testing.assert_close(flat(features), flat(expected), **EXACT)


@torch.no_grad()
def test_intermediates_are_reduced_features_at_their_patches():
    model = small_timm()
    images = photos(model, batch=1)
    reduced = mmclca.reduce_tokens(model, 'TopK', 0.5, layers=(1, 2))
    final, maps = reduced.forward_intermediates(images)
    torch.testing.assert_close(final, reduced.forward_features(images))
    kept = [int(y.any(dim=1).sum()) for y in maps]
    assert kept == [16, 8, 4, 4]
    tokens = reduced.forward_tokens(images)[1]
    (last,) = reduced.get_intermediate_layers(images, norm=True)
    rows = last[0][last[0].any(dim=1)]
    assert {*rows[:, 0].tolist()} == {*tokens.features[0, 1:, 0].tolist()}


@torch.no_grad()
def test_features_only_wrapper_returns_reduced_features():
    model = small_timm()
    images = photos(model)
    reduced = mmclca.reduce_tokens(model, 'TopK', 0.5, layers=(1, 2))
    expected = reduced.forward_intermediates(images, [0, 2])[1]
    wrapper = FeatureGetterNet(reduced, out_indices=[0, 2])
    torch.testing.assert_close(wrapper(images), expected)
    assert len(wrapper.model.blocks) == 3


@SLOW
@pytest.mark.parametrize('method', ['ATS', 'DynamicViT', 'SiT', 'ToMe'])
@torch.no_grad()
def test_intermediates_with_cache_have_shapes_of_timm(method):
    model = small_timm('distilled')
    images = photos(model)
    reduced = mmclca.reduce_tokens(model, method, 0.5, clca=True)
    expected = model.forward_intermediates(images, intermediates_only=True)
    maps = reduced.forward_intermediates(images, intermediates_only=True)
    assert [y.shape for y in maps] == [y.shape for y in expected]
    assert all(y.isfinite().all() and y.any() for y in maps)


def test_layers_of_cla_head_are_not_removed():
    reduced = mmclca.reduce_tokens(small_timm(), 'ToMe', clca=True)
    with pytest.raises(ValueError, match='clca'):
        reduced.prune_intermediate_layers(1)


@needs('timm', '1.0.26')
@torch.no_grad()
def test_masks_work_without_reduction_and_are_refused_with_it():
    model = small_timm()
    images = photos(model)
    mask = torch.zeros(17, 17, dtype=torch.float64)
    mask[:, 3] = -torch.inf
    plain = mmclca.reduce_tokens(model, None)
    for inputs in (dict(attn_mask=mask), dict(is_causal=True)):
        expected = model(images, **inputs)
        torch.testing.assert_close(plain(images, **inputs), expected, **EXACT)
        reduced = mmclca.reduce_tokens(model, 'ToMe', 0.5)
        for call in (
            reduced,
            reduced.forward_features,
            reduced.forward_intermediates,
        ):
            with pytest.raises(ValueError, match='attn_mask'):
                call(images, **inputs)


@pytest.mark.parametrize(
    'follow', [torch.fx.symbolic_trace, torch.jit.script, AttentionExtract]
)
def test_graph_tool_is_refused_with_alternatives(follow):
    reduced = mmclca.reduce_tokens(small_timm(), 'ToMe', 0.5)
    with pytest.raises(ValueError, match='forward_intermediates') as error:
        follow(reduced)
    assert '\n' not in str(error.value)
