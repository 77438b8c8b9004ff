# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A ViT whose layers have branches, with reducers, in training and as one."""

import pytest
import torch
from small_models import CACHE, REDUCERS, build, classifier, images, vit

from mmclca.evaluation.cost import count_config
from mmclca.registry import MODELS

SCALED = dict(layer_scale_init_value=0.1)


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
