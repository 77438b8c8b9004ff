# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Layer depths of parameters, for layer-wise learning rates."""

import pytest
from mmpretrain.models.backbones import VisionTransformer
from small_models import CACHE, arch, vit
from toy_reducers import Scored

from mmclca.registry import MODELS

SMALL = dict(img_size=32, patch_size=8)
ONE_LAYER = dict(embed_dims=48, num_layers=1)
SCORED = dict(reducer=dict(type=Scored), reduce_at=(1, 3), cache=CACHE)
TOKENS = dict(pre_norm=True, num_registers=2, dist_token=True)
MERGER = dict(reducer=dict(type='mmclca.PatchMerger'), reduce_at=(1,))
CONFIGS = dict(
    vit=vit(4, **TOKENS, **SCORED),
    cait=dict(SMALL, type='mmclca.CaiT', arch=arch(3), **MERGER),
    resmlp=dict(
        SMALL, type='mmclca.ResMLP', arch=ONE_LAYER, pooling='class_mlp'
    ),
    patchconvnet=dict(
        type='mmclca.PatchConvNet', arch=ONE_LAYER, with_pos=True
    ),
)
DEPTHS = dict(  # some parameters per depth
    vit=[
        'cls_token dist_token pos_embed patch_embed.projection.weight '
        'cache.clr cache.clr_pos pre_norm.weight register_tokens',
        'layers.0.ln1.weight',
        'reducer.scores.0.0.weight reducer.shared.5.weight reducer.scale',
        'layers.2.attn.qkv.bias',
        'layers.3.ffn.layers.1.bias reducer.scores.1.2.bias',
        'ln1.weight',
    ],
    cait=[
        'cls_token pos_embed',
        'layers.0.attn.qkv.bias',
        'layers.1.ln1.weight reducer.stages.0.queries',
        'layers.2.attn.mix_logits.weight',
        'class_layers.0.ln1.weight',
        'class_layers.1.gamma1.weight',
        'ln1.weight',
    ],
    resmlp=[
        'patch_embed.projection.bias',
        'layers.0.mix.weight',
        'class_layers.0.mix.bias',
        'class_layers.1.norm1.beta',
        'norm.alpha',
    ],
    patchconvnet=[
        'pos_embed patch_embed.projection.0.weight',
        'layers.0.conv1.bias',
        'pool.cls_token pool.ln.weight',
    ],
)


@pytest.mark.parametrize('kind', CONFIGS)
def test_layer_depth_of_parameters(kind):
    model, parts = MODELS.build(CONFIGS[kind]), DEPTHS[kind]
    names = dict(model.named_parameters()).keys()
    for depth, some in enumerate(parts):
        for name in some.split():
            assert name in names, sorted(names)
            found = model.get_layer_depth(f'backbone.{name}', 'backbone.')
            assert found == (depth, len(parts)), name
    last = len(parts) - 1
    found = model.get_layer_depth('head.fc.weight', 'backbone.')
    assert found == (last, last + 1)


def test_layer_depths_equal_mmpretrain():
    ours, theirs = MODELS.build(vit(4)), VisionTransformer(arch(4), 32, 8)
    for name in theirs.state_dict():
        depth = theirs.get_layer_depth(f'backbone.{name}', 'backbone.')
        assert ours.get_layer_depth(f'backbone.{name}', 'backbone.') == depth
