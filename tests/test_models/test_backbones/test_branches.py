# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A ViT whose layers have branches, with reducers, in training and as one."""

import pytest
import torch
from small_models import (
    CACHE,
    REDUCERS,
    build,
    classifier,
    gradients,
    images,
    vit,
)

from mmclca.evaluation.cost import count_config
from mmclca.registry import MODELS

SCALED = dict(layer_scale_init_value=0.1)


@pytest.mark.parametrize('branches', [0, 1.5, True, '2'])
def test_what_is_no_number_of_branches_is_refused(branches):
    with pytest.raises(ValueError, match=f'branches={branches!r} .*1 or more'):
        MODELS.build(vit(2, branches=branches))


@pytest.mark.parametrize(
    'settings, message',
    [
        (dict(drop_rate=0.1), r'drop_rate=0\.1'),
        (dict(layer_cfgs=dict(num_fcs=3)), 'two linear layers'),
        (dict(layer_cfgs=dict(ffn_type='swiglu_fused')), 'SwiGLUFFNFused'),
    ],
)
def test_layers_that_cannot_be_joined_are_refused(settings, message):
    MODELS.build(vit(2, branches=1, **settings))
    with pytest.raises(ValueError, match=message):
        MODELS.build(vit(2, branches=2, **settings))


def test_parameters_and_cost_are_those_of_a_sequence():
    costs = [
        count_config(classifier(vit(layers, branches=branches)))
        for layers, branches in ((6, 1), (3, 2), (2, 3))
    ]
    assert len({(cost.flops, cost.params) for cost in costs}) == 1


@pytest.mark.parametrize('name', REDUCERS)
def test_a_reducer_sees_all_heads_and_fusing_changes_nothing(name):
    reducer = dict(type=f'mmclca.{name}', keep_rate=0.5)
    config = vit(3, reducer=reducer, reduce_at=(0, 1), cache=CACHE, **SCALED)
    backbone = build(dict(config, branches=2)).double().eval()
    x, heads = images().double(), []
    between = backbone.reducer.between

    def note(tokens, attended, stage):
        heads.append(attended.k.size(1))
        return between(tokens, attended, stage)

    backbone.reducer.between = note
    with torch.no_grad():
        (before,), reduced = backbone.forward_tokens(x)
        assert backbone.fuse() is backbone
        (after,), again = backbone.forward_tokens(x)
    assert set(heads) == {4}
    torch.testing.assert_close(after, before, rtol=0, atol=1e-12)
    torch.testing.assert_close(again.patch_weights, reduced.patch_weights)


def clca(**options):
    reducer = dict(type='mmclca.EViT', keep_rate=0.5)
    return classifier(
        vit(3, reducer=reducer, reduce_at=(1,), cache=CACHE, **options),
        cla=True,
    )


def test_recomputed_layers_get_the_same_gradients():
    config = clca(branches=2, drop_path_rate=0.5, drop_path_mode='uniform')
    model, x, grads = build(config).train(), images(8), []
    for with_cp in (False, True):
        model.backbone.with_cp = with_cp
        model.zero_grad()
        torch.manual_seed(0)
        sum(model.backbone(x)).square().sum().backward()
        grads.append(gradients(model.backbone))
    torch.testing.assert_close(*grads)


def test_decay_and_freezing_go_by_layers():
    backbone = MODELS.build(vit(3, branches=2, frozen_stages=1))
    depths = {
        backbone.get_layer_depth(f'layers.1.branches.{branch}.ln2.weight')
        for branch in (0, 1)
    }
    assert depths == {backbone.get_layer_depth('layers.1.ln2.weight')}
    for _ in range(2):
        first, second = backbone.layers[:2]
        assert not any(p.requires_grad for p in first.parameters())
        assert not any(m.training for m in first.modules())
        assert all(m.training for m in second.modules())
        backbone.train()


def test_mixed_precision():
    backbone, x = build(vit(2, branches=2)), images()
    for mode in (True, False):
        (right,) = backbone.train(mode)(x)
        with torch.autocast('cpu', torch.bfloat16):
            (made,) = backbone(x)
        assert 0 < (made - right).abs().max() < 0.1 * right.abs().max()


def test_dropout_of_attention_weights_acts_in_training_only():
    cfgs = dict(attn_drop_rate=0.5)
    backbone, x = build(vit(2, branches=2, layer_cfgs=cfgs)), images()
    for mode in (True, False):
        backbone.train(mode)
        same = torch.equal(backbone(x)[0], backbone(x)[0])
        assert same == (not mode)
