# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""DINOv3, EVA-02 and other models of timm's class ``Eva``."""

import math
from itertools import product

import pytest
import timm
import torch
from installed import needs
from small_eva import NAMES, OWN, small_eva
from small_timm import photos
from timm.layers import apply_keep_indices_nlc
from timm.models.eva import Eva

import mmclca
from mmclca.models import list_methods
from mmclca.models.reduced import support

pytestmark = needs('timm', '1.0.31')
KINDS = (*NAMES, *OWN)
ALL = (*timm.list_models(module='eva'), *OWN)
EXACT = dict(rtol=0, atol=1e-10)


def check_equal(kind):
    """Compare outputs without a method with timm, in its loop and in ours."""
    model = small_eva(kind)
    same, images = mmclca.reduce_tokens(model, None), photos(model)
    expected = model(images)
    assert expected.std() > 1e-3 and len(model.blocks) == 4
    torch.testing.assert_close(same(images), expected, **EXACT)
    found = same.forward_head(same.forward_tokens(images)[0][0])
    torch.testing.assert_close(found, expected, **EXACT)


def gather_rows(model, x, rope, keep, has_batch):
    """Keep rotary rows as timm does in dropping patches."""
    if has_batch and model.rope_mixed:
        rope = rope.transpose(0, 1)
    rope = apply_keep_indices_nlc(x, rope, keep, has_batch)
    if model.rope_mixed:
        return rope.transpose(0, 1)
    return rope if has_batch else rope.unsqueeze(1)


def drop_by_cls_attention(model, images, layers, rate=0.5):
    """Run timm's own layers and drop patches between attention and FFN."""
    x, rope = model._pos_embed(model.patch_embed(images))
    x = model.norm_pre(x)
    start, counts, maps = model.num_prefix_tokens, [], []
    for i, block in enumerate(model.blocks):
        block.attn.fused_attn = False
        hook = block.attn.attn_drop.register_forward_pre_hook(
            lambda module, inputs: maps.append(inputs[0])
        )
        rows = rope[i] if rope is not None and model.rope_mixed else rope
        if type(block).__name__ == 'EvaBlockPostNorm':
            x = x + block.norm1(block.attn(x, rope=rows))
        else:
            y = block.attn(block.norm1(x), rope=rows)
            x = x + (y if block.gamma_1 is None else block.gamma_1 * y)
        hook.remove()
        if i in layers:
            score = maps[-1].mean(dim=1)[:, 0, start:]
            count = math.ceil(rate * score.size(1))
            keep = score.topk(count).indices
            if rope is not None:
                rope = gather_rows(model, x, rope, keep, bool(counts))
            patches = x[:, start:].take_along_dim(keep.unsqueeze(-1), dim=1)
            x = torch.cat((x[:, :start], patches), dim=1)
            counts.append(count)
        if type(block).__name__ == 'EvaBlockPostNorm':
            x = x + block.norm2(block.mlp(x))
        else:
            y = block.mlp(block.norm2(x))
            x = x + (y if block.gamma_2 is None else block.gamma_2 * y)
    return model.forward_head(model.norm(x)), counts


def check_dropping(kind):
    """Compare Top-K with an independent loop."""
    model = small_eva(kind)
    images, settings = photos(model), dict(keep_rate=0.5, layers=(1, 2))
    if model.cls_token is None:
        with pytest.raises(ValueError, match='TopK needs a CLS token'):
            mmclca.reduce_tokens(model, 'TopK', **settings)
        return
    reduced = mmclca.reduce_tokens(model, 'TopK', **settings)
    found = reduced(images)
    expected, counts = drop_by_cls_attention(model, images, layers=(1, 2))
    assert counts == [18, 9]
    torch.testing.assert_close(found, expected, **EXACT)


def check_merging(kind, **settings):
    """Merge each patch with its copy, which changes nothing."""
    model = small_eva(kind)
    rates = dict(keep_rate=0.5, layers=(1,))
    merging = mmclca.reduce_tokens(model, 'ToMe', **rates, **settings)
    images, start = photos(model), model.num_prefix_tokens
    ends = []
    for reduced in (mmclca.reduce_tokens(model, None), merging):
        tokens, _ = reduced.embed(images)
        patches = torch.arange(36).repeat_interleave(2).expand(3, -1)
        tokens = tokens.keep(patches).replace(num_patches=72)
        ends.append(reduced.run_layers(tokens, lambda i, x: None).features)
    expected, merged = ends
    torch.testing.assert_close(
        expected[:, start::2], expected[:, start + 1 :: 2], **EXACT
    )
    both = torch.cat((expected[:, :start], expected[:, start::2]), dim=1)
    torch.testing.assert_close(merged, both, **EXACT)


def check_reducer(model, method, rate):
    """Reduce: finite, deterministic, per image, with all gradients."""
    images = photos(model)
    try:
        reduced = mmclca.reduce_tokens(model, method, rate)
    except ValueError as error:
        assert model.cls_token is None and 'needs a CLS token' in str(error)
        return
    with torch.no_grad():
        found = [reduced(images), reduced(images)]
        each = torch.cat([reduced(image) for image in images.split(1)])
    assert found[0].isfinite().all() and found[0].equal(found[1])
    torch.testing.assert_close(found[0], each)
    reduced.train()(images).square().sum().backward()
    names = [n for n, x in reduced.named_parameters() if x.grad is None]
    assert not names
    reduced.zero_grad()


@pytest.mark.parametrize('kind', KINDS)
@torch.no_grad()
def test_without_method_equals_timm(kind):
    check_equal(kind)


@pytest.mark.parametrize('kind', KINDS[:6])
@torch.no_grad()
def test_dropping_equals_loop_over_layers_of_timm(kind):
    check_dropping(kind)


@pytest.mark.parametrize('kind', KINDS[:5:2])
@torch.no_grad()
def test_merging_copies_changes_nothing(kind):
    check_merging(kind)


@pytest.mark.slow
@pytest.mark.parametrize('kind', ALL)
@torch.no_grad()
def test_every_name_equals_timm_and_drops_and_merges(kind):
    check_equal(kind)
    check_dropping(kind)
    check_merging(kind)


@pytest.mark.slow
@pytest.mark.parametrize('kind', ALL)
def test_every_reducer_runs_on_every_name(kind):
    model = small_eva(kind)
    for method, rate in product(list_methods(), (0.7, 0.25)):
        check_reducer(model, method, rate)


@pytest.mark.parametrize('method', ['ToMe', 'SiT'])
@pytest.mark.parametrize('kind', KINDS[:5:4])
def test_reducer_runs(kind, method):
    check_reducer(small_eva(kind), method, 0.25)


@pytest.mark.parametrize(
    ('options', 'method', 'message'),
    [
        (dict(class_token=False), 'EViT', 'EViT needs a CLS token'),
        (dict(rope_type='base'), 'ToMe', "rope is none of timm's"),
    ],
)
def test_eva_is_refused_with_reason(options, method, message):
    model = small_eva('mrope', **(dict(rope_mrope_section=None) | options))
    with pytest.raises(ValueError, match=message) as error:
        mmclca.reduce_tokens(model, method)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        (dict(merged_position='first'), "merged_position: no 'first'"),
        (dict(keys='all'), "keys: no 'all'"),
        (dict(key='rotated'), "no setting 'key'.*keys"),
    ],
)
def test_unknown_setting_of_positions_is_refused(settings, message):
    with pytest.raises(ValueError, match=message) as error:
        mmclca.reduce_tokens(small_eva(KINDS[0]), 'ToMe', **settings)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('inputs', [dict(is_causal=True), 'mask'])
def test_mask_is_refused_with_token_reduction(inputs):
    model = small_eva(KINDS[0])
    images = photos(model)
    if inputs == 'mask':
        inputs = dict(attn_mask=torch.ones(41, 41).bool())
    for call in (
        mmclca.reduce_tokens(model, 'ToMe'),
        mmclca.reduce_tokens(model, 'ToMe').forward_features,
    ):
        with pytest.raises(ValueError, match=next(iter(inputs))) as error:
            call(images, **inputs)
        assert '\n' not in str(error.value)
    same = mmclca.reduce_tokens(model, None)
    torch.testing.assert_close(
        same(images, **inputs), model(images, **inputs), **EXACT
    )


def test_eva_of_older_timm_is_refused_by_name(monkeypatch):
    monkeypatch.delitem(support.TIMM, Eva)
    with pytest.raises(
        ValueError, match=r'Eva .*needs timm 1\.0\.20'
    ) as error:
        mmclca.reduce_tokens(small_eva(KINDS[0]))
    assert '\n' not in str(error.value)


def test_mean_position_with_dropped_patches_is_refused():
    model = small_eva('mrope', patch_drop_rate=0.5)
    with pytest.raises(ValueError, match='patch_drop_rate'):
        mmclca.reduce_tokens(model, 'ToMe', merged_position='mean')


@pytest.mark.parametrize('kind', ['mrope', 'vit_small_patch16_rope_mixed_224'])
def test_patches_dropped_in_training_take_their_rows_along(kind):
    model = small_eva(kind, patch_drop_rate=0.5).train()
    same = mmclca.reduce_tokens(model, None)
    images = photos(model)
    torch.manual_seed(0)
    found, _ = same.forward_tokens(images)
    torch.manual_seed(0)
    expected = model.forward_features(images)
    torch.testing.assert_close(found[0], expected, **EXACT)
    reduced = mmclca.reduce_tokens(model, 'ToMe', 0.5)
    assert reduced(images).isfinite().all()


@pytest.mark.parametrize('kind', KINDS[:5:4])
def test_clca_adds_cache_and_head(kind):
    model = small_eva(kind)
    reduced = mmclca.reduce_tokens(model, clca=True)
    images = photos(model)
    assert [x.shape for x in reduced.forward_features(images)] == 3 * [(3, 64)]
    reduced.train()(images).square().sum().backward()
    assert all(x.grad is not None for x in reduced.parameters())


@torch.no_grad()
def test_other_image_size_equals_timm():
    model = small_eva('dynamic')
    images = torch.randn(2, 3, 64, 40, dtype=torch.float64)
    same = mmclca.reduce_tokens(model, 'ToMe', 1.0)
    torch.testing.assert_close(same(images), model(images), **EXACT)


@torch.no_grad()
def test_features_of_layers_equal_timm():
    model = small_eva(KINDS[0])
    images = photos(model)
    same = mmclca.reduce_tokens(model, 'ToMe', 1.0)
    options = dict(indices=[1, 3], return_prefix_tokens=True)
    found = same.forward_intermediates(images, **options)
    expected = model.forward_intermediates(images, **options)
    torch.testing.assert_close(found, expected, **EXACT)


@torch.no_grad()
def test_hook_may_change_the_output_of_the_attention():
    model = small_eva(KINDS[0])
    images, reduced = photos(model), mmclca.reduce_tokens(model, 'ToMe')
    before = reduced(images)
    hook = reduced.blocks[0].attn.register_forward_hook(
        lambda module, inputs, output: 0 * output
    )
    assert not reduced(images).allclose(before)
    hook.remove()
    assert reduced(images).equal(before)
