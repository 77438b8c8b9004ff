# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ViTs with parallel branches: cost, reducers, fusing, freezing."""

import pytest
import torch
from small_models import CACHE, build, classifier, images, vit

from mmclca.evaluation.cost import count_config
from mmclca.registry import MODELS


def test_parameters_and_cost_equal_sequential_layers():
    costs = [
        count_config(classifier(vit(layers, branches=branches)))
        for layers, branches in ((6, 1), (2, 3))
    ]
    assert len({(cost.flops, cost.params) for cost in costs}) == 1


@pytest.mark.parametrize('name', ['ATS', 'DynamicViT', 'EViT', 'ToMe'])
def test_reducer_sees_heads_of_all_branches_before_and_after_fusing(name):
    reduction = dict(
        reducer=dict(type=f'mmclca.{name}', keep_rate=0.5),
        reduce_at=(0, 1),
        cache=CACHE,
    )
    config = vit(3, branches=2, layer_scale_init_value=0.1, **reduction)
    backbone = build(config).double().eval()
    x, heads = images().double(), []
    after_attention = backbone.reducer.after_attention

    def note(tokens, attended, stage):
        heads.append(attended.k.size(1))
        return after_attention(tokens, attended, stage)

    backbone.reducer.after_attention = note
    with torch.no_grad():
        (before,), reduced = backbone.forward_tokens(x)
        assert backbone.fuse() is backbone
        (after,), again = backbone.forward_tokens(x)
    assert set(heads) == {4}
    torch.testing.assert_close(after, before, rtol=0, atol=1e-12)
    torch.testing.assert_close(again.patch_weights, reduced.patch_weights)


def test_layer_depth_and_freezing_treat_branches_as_one_layer():
    backbone = MODELS.build(vit(3, branches=2, frozen_stages=1))
    depths = {
        backbone.get_layer_depth(f'layers.1.{name}ln2.weight')
        for name in ('', 'branches.0.', 'branches.1.')
    }
    assert len(depths) == 1
    for _ in range(2):
        first, second = backbone.layers[:2]
        assert not any(p.requires_grad for p in first.parameters())
        assert not any(m.training for m in first.modules())
        assert all(m.training for m in second.modules())
        backbone.train()


def test_attention_dropout_applies_in_training_only():
    cfgs, x = dict(attn_drop_rate=0.5), images()
    backbone = build(vit(2, branches=2, layer_cfgs=cfgs))
    for train in (True, False):
        backbone.train(train)
        assert torch.equal(backbone(x)[0], backbone(x)[0]) == (not train)
