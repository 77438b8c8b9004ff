# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Models of timm with token reduction: outputs, sharing and errors."""

import pickle
from copy import deepcopy
from itertools import product

import pytest
import timm
import torch
from installed import needs
from small_timm import KINDS, photos, small_timm

import mmclca
from mmclca.models import Reducible, list_methods
from mmclca.utils.meta_device import on_meta_device

EXACT = dict(rtol=0, atol=1e-10)
BLOCKS = (
    *('plain', 'post_norm', 'parallel', 'scaling', 'scaling_fused'),
    *('diff', 'diff_parallel', 'diff_scaling'),
)


@pytest.mark.parametrize('kind', KINDS)
@torch.no_grad()
def test_without_method_equals_timm(kind):
    model = small_timm(kind)
    same = mmclca.reduce_tokens(model, None, layers=(99,))
    images = photos(model)
    for features in (
        same.forward_features(images),
        same.forward_tokens(images)[0][0],
    ):
        scores = same.forward_head(features)
        torch.testing.assert_close(scores, model(images), **EXACT)
    assert isinstance(same, Reducible) and isinstance(same, type(model))
    assert same.state_dict().keys() == model.state_dict().keys()


@torch.no_grad()
def test_without_method_equals_timm_at_other_size():
    model = small_timm('dynamic')
    images = torch.randn(2, 3, 20, 43, dtype=torch.float64)
    same = mmclca.reduce_tokens(model, None)
    torch.testing.assert_close(same(images), model(images), **EXACT)
    assert same.embed(images)[1] == (3, 6)


@pytest.mark.slow
@pytest.mark.parametrize(
    'kind',
    [
        # pooling with a mask, of tokens with weights
        pytest.param(x, marks=needs('timm', '1.0.16') if 'map' in x else ())
        for x in KINDS
    ],
)
@torch.no_grad()
def test_every_reducer_runs_on_every_kind(kind):
    model = small_timm(kind)
    plain, images = mmclca.reduce_tokens(model, None), photos(model)
    for method, rate in product(list_methods(), (0.7, 0.25)):
        try:
            reduced = mmclca.reduce_tokens(model, method, rate)
        except ValueError as error:
            assert not plain.has_cls and 'needs a CLS token' in str(error)
            continue
        left = reduced.forward_tokens(images)[1]
        assert left.features.size(1) < plain.forward_tokens(images)[
            1
        ].features.size(1)
        found = [reduced(images), *map(reduced, images.split(1))]
        assert found[0].isfinite().all()
        if kind != 'all_tokens':  # their number depends on the batch in ATS
            torch.testing.assert_close(found[0], torch.cat(found[1:]))


@pytest.mark.parametrize('kind', BLOCKS)
@torch.no_grad()
def test_bias_and_softmax_act_on_attention(kind):
    model = mmclca.reduce_tokens(small_timm(kind), None)
    layer = model.blocks[1]
    tokens = model.embed(photos(model))[0]
    bias = torch.zeros(1, 1, 1, tokens.features.size(1), dtype=torch.float64)
    bias[..., -1] = -torch.inf
    short = tokens.with_features(tokens.features[:, :-1])
    expected = model.attention_block(layer, short, None, None)[0]
    for softmax in (None, lambda logits: logits.softmax(-1)):
        found, attended = model.attention_block(layer, tokens, bias, softmax)
        torch.testing.assert_close(found[:, :-1], expected)
    assert (attended.cls_attn() >= 0).all()
    assert not attended.cls_attn()[..., -1].any()


def test_original_stays_and_shares_its_parameters():
    model = small_timm('hybrid')
    reduced = mmclca.reduce_tokens(model, keep_rate=0.7).train()
    reduced.reset_classifier(7)
    reduced.set_grad_checkpointing()
    assert not any(part.training for part in model.modules())
    assert model.head.out_features == 5 and not model.grad_checkpointing
    own, others = (dict(x.named_parameters()) for x in (model, reduced))
    del own['head.weight'], own['head.bias']
    assert all(others[name] is value for name, value in own.items())
    copied = mmclca.reduce_tokens(model, copy=True)
    values = {id(x) for x in model.parameters()}
    assert not values & {id(x) for x in copied.parameters()}
    assert type(pickle.loads(pickle.dumps(copied))) is type(copied)


def test_layers_default_to_quarters():
    for depth, layers in {12: (3, 6, 9), 6: (1, 3, 4), 2: (0, 1)}.items():
        reduced = mmclca.reduce_tokens(small_timm(depth=depth))
        assert reduced.reduce_at == layers


def test_settings_reach_the_reducer():
    model = small_timm()
    settings = dict(num_tokens=[8, 4], layers=(1, 2), merge_share=0.0)
    reduced = mmclca.reduce_tokens(model, 'DiffRate', **settings)
    assert reduced.reducer.merge_share == 0.0
    assert reduced.forward_tokens(photos(model))[1].features.size(1) == 1 + 4


@pytest.mark.parametrize('kind', ['clip', 'registers', 'distilled'])
def test_clca_adds_cache_and_head(kind, capsys):
    model = small_timm(kind)
    reduced = mmclca.reduce_tokens(model, clca=True)
    assert capsys.readouterr().err.count('\n') == 1
    torch.testing.assert_close(reduced.cache.clr, model.cls_token)
    has_position = kind != 'registers'
    assert reduced.cache.clr_pos.any() == has_position
    images = photos(model)
    features = reduced.forward_features(images)
    assert [x.shape for x in features] == 3 * [(3, 24)]
    scores = reduced(images)
    torch.testing.assert_close(reduced.forward_head(features), scores)
    reduced.reset_classifier(2)
    assert reduced(images).shape == (3, 2)
    assert reduced.get_classifier() is reduced.head
    reduced.train()(images).sum().backward()
    assert all(x.grad is not None for x in reduced.parameters())


@pytest.mark.parametrize(
    ('model', 'settings', 'message'),
    [
        ('plain', dict(layers=(3, 4)), 'layers=.* within 0 to 3'),
        ('plain', dict(layers=-1), 'layers=-1 .* within 0 to 3'),
        ('plain', dict(keep_rate=0), 'keep_rate=0 must be'),
        ('plain', dict(keep_rate=1.5), 'keep_rate=1.5 must be'),
        ('plain', dict(method='Evit'), 'EViT'),
        ('no_cls_registers', dict(method='EViT'), 'EViT needs a CLS token'),
        ('no_cls', dict(method='ToMe', clca=True), 'class token'),
        ('beit_base_patch16_224', {}, 'Beit .* bias'),
        ('vit_relpos_small_patch16_224', {}, 'RelPos .* bias'),
        ('samvit_base_patch16_224', {}, 'SAM .* windows'),
        ('resnet18', {}, 'ResNet .* expected'),
    ],
)
def test_refused_with_reason(model, settings, message):
    if model in KINDS:
        model = small_timm(model)
    else:
        with on_meta_device():
            model = timm.create_model(model)
    with pytest.raises(ValueError, match=message) as error:
        mmclca.reduce_tokens(model, **settings)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize(
    ('kind', 'method', 'settings'),
    [
        ('plain', 'EViT', {}),
        ('plain', 'DiffRate', dict(target=1e-4)),
        ('average', 'DynamicViT', {}),
        pytest.param('map', 'DynamicViT', {}, marks=needs('timm', '1.0.16')),
    ],
)
def test_auxiliary_loss_follows_last_training_pass(kind, method, settings):
    model = small_timm(kind)
    reduced = mmclca.reduce_tokens(model, method, layers=1, **settings)
    assert reduced.auxiliary_loss() == 0
    reduced.train()
    score = reduced(photos(model)).sum()
    loss = reduced.auxiliary_loss()
    assert (loss > 0) == (method != 'EViT')
    (score + loss).backward()
    for parameter in reduced.parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all()
    if method != 'EViT':
        parts = [*reduced.reducer.parameters()]
        assert any(part.grad.any() for part in parts)
    assert deepcopy(reduced).auxiliary_loss() == 0
