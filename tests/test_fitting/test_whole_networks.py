# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Infer the settings of CaiT, ResMLP and PatchConvNet for fit."""

import pytest
import timm
import torch
from small_models import arch

from mmclca.checkpoints.checkpoint import Checkpoint
from mmclca.checkpoints.error import CheckpointError
from mmclca.fitting.architecture import infer_backbone
from mmclca.registry import MODELS

SIZES = dict(embed_dims=16, num_layers=3)
BACKBONES = dict(
    cait=dict(type='mmclca.CaiT', arch=arch(3), img_size=32, patch_size=8),
    resmlp=dict(
        type='mmclca.ResMLP',
        arch=SIZES,
        img_size=24,
        patch_size=8,
        pooling='class_mlp',
    ),
    patchconvnet=dict(type='mmclca.PatchConvNet', arch=SIZES, img_size=32),
)


def built(backbone):
    with torch.device('meta'):
        return MODELS.build(backbone)


def shapes(backbone):
    return {k: v.shape for k, v in backbone.state_dict().items()}


@pytest.mark.parametrize('name', BACKBONES)
def test_settings_are_inferred_from_shapes(name):
    config = BACKBONES[name]
    found = infer_backbone(file_of(config))
    assert found['type'] == config['type']
    assert config | found == config
    again = dict(found, img_size=config['img_size'])
    assert shapes(built(again)) == shapes(built(config))


def test_settings_are_inferred_from_timm_names():
    with torch.device('meta'):
        weights = timm.create_model('resmlp_12_224').state_dict()
    found = infer_backbone(
        Checkpoint.from_weights(weights, 'resmlp_12_224.pth')
    )
    assert found['type'] == 'mmclca.ResMLP'
    assert found['arch'] == dict(embed_dims=384, num_layers=12)
    assert found['patch_size'] == 16


def file_of(backbone, **meta):
    """Checkpoint of a backbone with metadata."""
    weights = built(backbone).state_dict()
    weights = {f'backbone.{k}': v for k, v in weights.items()}
    return Checkpoint(dict(state_dict=weights, meta=meta), 'w.pth')


def config_of(backbone):
    return f'model = {dict(backbone=backbone)}'


EPS = dict(norm_cfg=dict(type='LN', eps=1e-3))
NO_RELEASE = [  # settings, and a parameter that shows them
    ('cait', dict(talking_heads=False), 'mix_logits.weight is missing'),
    ('cait', dict(cls_at=0, num_class_layers=0), 'class_layers.0.ln1'),
    ('cait', dict(in_channels=1), r'\(16, 3, 8, 8\)'),
    ('resmlp', dict(norm_cfg=dict(type='LN')), 'norm1.alpha is missing'),
    ('resmlp', dict(token_mixer='conv'), 'mix.weight is missing'),
    ('patchconvnet', dict(pooling='average'), 'pool.cls_token is missing'),
    ('patchconvnet', dict(stem=None), 'projection.weight is'),
    ('patchconvnet', dict(multiclass=5), r'\(1, 5, 16\), .* \(1, 1, 16\)'),
]
IN_CONFIG = [  # settings not shown by names and shapes
    ('cait', dict(cls_at=0, reducer=dict(type='mmclca.ToMe'), reduce_at=1)),
    ('patchconvnet', dict(num_heads=2)),
    ('resmlp', dict(token_mixer='none', arch='s12')),
    *((name, EPS) for name in ('cait', 'patchconvnet')),
]


@pytest.mark.parametrize('name, options, told', NO_RELEASE)
def test_unusual_settings_need_the_stored_config(name, options, told):
    """Bare weights are refused, and accepted with their config."""
    backbone = dict(BACKBONES[name], **options)
    kind = backbone['type']
    with pytest.raises(CheckpointError, match=told) as refused:
        infer_backbone(file_of(backbone))
    line = str(refused.value)
    assert line.startswith('w.pth') and kind in line
    assert 'tools/train.py' in line and '\n' not in line
    stored = file_of(backbone, cfg=config_of(backbone))
    if {'in_channels', 'multiclass'} & {*options}:  # fixed by fit
        with pytest.raises(CheckpointError, match=told):
            infer_backbone(stored)
        return
    found = infer_backbone(stored)
    assert {*backbone} - {*found} <= {'img_size'}
    assert backbone | found == backbone


@pytest.mark.parametrize('name, options', IN_CONFIG)
def test_stored_config_defines_hidden_settings(name, options):
    backbone = dict(BACKBONES[name], **options)
    found = infer_backbone(file_of(backbone, cfg=config_of(backbone)))
    told = {k: v for k, v in backbone.items() if k in found and k != 'arch'}
    assert found == dict(told, arch=found['arch'])
    assert found['arch']['num_layers'] == (12 if 'arch' in options else 3)


CAIT = BACKBONES['cait']
OTHERS = [  # configs stored with CaiT weights
    (config_of(dict(CAIT, talking_heads=False)), 'mix_logits'),
    (config_of(dict(CAIT, class_layers=2)), 'class_layers'),
    ('import os\nmodel = dict(backbone=dict())', 'w.pth.*import os'),
]


@pytest.mark.parametrize('text, told', OTHERS)
def test_stored_config_is_refused_if_weights_differ(text, told):
    with pytest.raises((CheckpointError, ValueError), match=told):
        infer_backbone(file_of(CAIT, cfg=text))


def test_images_are_refused_if_not_square():
    backbone = dict(BACKBONES['resmlp'], img_size=(24, 32))
    with pytest.raises(CheckpointError, match=r'\(12, 12\), .* \(9, 9\)'):
        infer_backbone(file_of(backbone))
    backbone = dict(CAIT, img_size=(16, 64))  # 16 patches
    with pytest.raises(CheckpointError, match=r'\(16, 64\) px in \(2, 8\)'):
        infer_backbone(file_of(backbone, cfg=config_of(backbone)))
