# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from functools import cache

import pytest
import timm
import torch

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.releases import name_source
from mmclca.fitting.architecture import backbone_of
from mmclca.registry import MODELS

HEADS = dict(
    vit_tiny_patch16_224=3,
    vit_base_patch32_224=12,
    deit3_small_patch16_224=6,
    vit_small_patch14_dinov2=6,
    vit_small_patch14_reg4_dinov2=6,
)


@cache
def weights_of(name):
    with torch.device('meta'):
        return timm.create_model(name).state_dict()


def released(name):
    """A file of timm's model, of shapes alone."""
    return name_source(weights_of(name), f'{name}.pth')


@pytest.mark.parametrize('name', HEADS)
def test_settings_are_those_of_the_model_in_the_file(name):
    weights = released(name)
    backbone = backbone_of(weights)
    assert backbone['arch']['num_heads'] == HEADS[name]
    with torch.device('meta'):
        model = MODELS.build(dict(backbone, img_size=224))
    own = model.state_dict()
    renamed = {'ln1.weight': 'norm.weight', 'cls_token': 'cls_token'}
    for key, theirs in renamed.items():
        assert own[key].shape == weights[theirs].shape
    in_layers = [key for key in weights if key.startswith('blocks.')]
    assert len(in_layers) == sum(key.startswith('layers.') for key in own)
    assert ('register_tokens' in own) == ('reg_token' in weights)


def test_layer_scale_and_positions_are_seen():
    backbone = backbone_of(released('deit3_small_patch16_224'))
    assert backbone['layer_scale_init_value'] > 0
    assert backbone['with_cls_pos'] is False
    plain = backbone_of(released('vit_tiny_patch16_224'))
    assert {*plain} == {'type', 'arch', 'patch_size', 'norm_cfg'}


def test_layers_without_a_bias_are_seen():
    weights = released('vit_tiny_patch16_224')
    for layer in range(12):
        del weights[f'blocks.{layer}.attn.qkv.bias']
    assert backbone_of(weights)['qkv_bias'] is False


@pytest.mark.parametrize(
    'name, what',
    [
        ('deit_tiny_distilled_patch16_224', 'a distilled DeiT'),
        ('vit_base_patch16_clip_224', 'an image tower of CLIP'),
        ('resnet18', 'a model without'),
    ],
)
def test_other_models_are_refused(name, what):
    with pytest.raises(CheckpointError, match=f'{name}.pth is of {what}'):
        backbone_of(released(name))


def test_heads_that_are_not_known_are_refused():
    weights = released('vit_tiny_patch16_224')
    weights['patch_embed.proj.weight'] = torch.zeros(80, 3, 16, 16)
    with pytest.raises(CheckpointError, match='80 channels'):
        backbone_of(weights)


def test_positions_that_are_no_square_are_refused():
    weights = released('vit_tiny_patch16_224')
    weights['pos_embed'] = torch.zeros(1, 199, 192)
    with pytest.raises(CheckpointError, match='199 positions'):
        backbone_of(weights)
