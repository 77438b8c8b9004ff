# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from functools import cache

import pytest
import timm
import torch

from mmclca.checkpoints.checkpoint import Checkpoint
from mmclca.checkpoints.error import CheckpointError
from mmclca.fitting.architecture import describe_assumed_heads, infer_backbone
from mmclca.registry import MODELS
from mmclca.utils.meta_device import on_meta_device

PLAIN = {'type', 'arch', 'patch_size', 'norm_cfg'}
SCALED = {'layer_scale_init_value'}
# head count, and settings besides PLAIN
RELEASED = dict(
    vit_tiny_patch16_224=(3, set()),
    deit3_small_patch16_224=(6, SCALED | {'with_cls_pos'}),
    vit_small_patch14_dinov2=(6, SCALED),
    vit_small_patch14_reg4_dinov2=(
        6,
        SCALED | {'num_registers', 'with_cls_pos'},
    ),
)


@cache
def get_weights(name):
    with on_meta_device():
        return timm.create_model(name).state_dict()


def released(name, **changes):
    """timm weights on the meta device."""
    weights = dict(get_weights(name), **changes)
    return Checkpoint.from_weights(weights, f'{name}.pth')


@pytest.mark.parametrize('name', RELEASED)
def test_settings_are_inferred_from_shapes(name):
    heads, more = RELEASED[name]
    weights = released(name)
    backbone = infer_backbone(weights)
    assert backbone['arch']['num_heads'] == heads
    assert {*backbone} == PLAIN | more
    with on_meta_device():
        own = MODELS.build(dict(backbone, img_size=224)).state_dict()
    renamed = {'ln1.weight': 'norm.weight', 'cls_token': 'cls_token'}
    for key, theirs in renamed.items():
        assert own[key].shape == weights.weights[theirs].shape
    in_layers = [key for key in weights.weights if key.startswith('blocks.')]
    assert len(in_layers) == sum(key.startswith('layers.') for key in own)


def test_missing_bias_is_detected():
    weights = released('vit_tiny_patch16_224')
    for layer in range(12):
        del weights.weights[f'blocks.{layer}.attn.qkv.bias']
    assert infer_backbone(weights)['qkv_bias'] is False


TINY = 'vit_tiny_patch16_224'
WIDTH = dict(cls_token=torch.zeros(1, 1, 80))
ROWS = dict(pos_embed=torch.zeros(1, 199, 192))
REFUSED = [
    ('deit_tiny_distilled_patch16_224', {}, 'dist_token is'),
    ('vit_base_patch16_clip_224', {}, 'pre_norm.weight'),
    ('resnet18', {}, 'is missing'),
    (TINY, WIDTH, 'embed_dims=80'),
    (TINY, ROWS, r'\(1, 199, 192\), .* \(1, 197, 192\)'),
]


@pytest.mark.parametrize('name, changes, said', REFUSED)
def test_weights_are_refused_if_unsupported(name, changes, said):
    with pytest.raises(CheckpointError, match=said):
        infer_backbone(released(name, **changes))


def test_head_count_is_read_from_the_stored_config():
    arch = dict(embed_dims=128, num_layers=1, feedforward_channels=64)
    backbone = dict(
        type='mmclca.TokenReductionViT',
        arch=dict(arch, num_heads=4),
        img_size=32,
    )
    weights = MODELS.build(backbone).state_dict()
    named = {f'backbone.{key}': value for key, value in weights.items()}
    config = f'model = {dict(type="ImageClassifier", backbone=backbone)}'
    contents = dict(state_dict=named, meta=dict(cfg=config))
    file = Checkpoint.from_contents(contents, 'w.pth')
    found = infer_backbone(file)
    assert found['arch']['num_heads'] == 4
    assert not describe_assumed_heads(file, found)
    assert describe_assumed_heads(
        Checkpoint.from_weights(named, 'w.pth'), found
    )
