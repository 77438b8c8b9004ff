# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""CaiT, ResMLP and PatchConvNet: what fit reads of a file of theirs."""

import re
from types import SimpleNamespace

import pytest
import timm
import torch
from small_models import arch
from tiny_photographs import write_photographs

import mmclca
from mmclca.checkpoints.architecture import backbone_of
from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.releases import name_source
from mmclca.fitting.model import SIDES, candidates_of, describe
from mmclca.registry import MODELS

SIZES = dict(embed_dims=16, num_layers=3)
BACKBONES = dict(
    cait=dict(type='mmclca.CaiT', arch=arch(3), img_size=32, patch_size=8),
    resmlp=dict(
        type='mmclca.ResMLP',
        arch=SIZES,
        img_size=24,
        patch_size=8,
        ending='class_mlp',
    ),
    patchconvnet=dict(type='mmclca.PatchConvNet', arch=SIZES, img_size=32),
)


def weights_of(model, name):
    """A file, of shapes alone."""
    return name_source(model.state_dict(), f'{name}.pth')


def built(backbone):
    with torch.device('meta'):
        return MODELS.build(backbone)


def shapes(backbone):
    return {k: v.shape for k, v in backbone.state_dict().items()}


@pytest.mark.parametrize('name', BACKBONES)
def test_settings_are_those_of_the_model_in_the_file(name):
    config = BACKBONES[name]
    head = dict(type='LinearClsHead', num_classes=3, in_channels=16)
    model = dict(type='ImageClassifier', backbone=config, head=head)
    found = backbone_of(weights_of(built(model), name))
    assert found['type'] == config['type']
    assert config | found == config
    assert shapes(built(dict(found, img_size=config['img_size']))) == shapes(
        built(config)
    )


@pytest.mark.parametrize(
    'name, kind, sizes',
    [
        ('cait_xxs24_224', 'CaiT', (192, 24, 4, 768)),
        ('resmlp_12_224', 'ResMLP', (384, 12)),
    ],
)
def test_files_with_the_names_of_timm(name, kind, sizes):
    with torch.device('meta'):
        found = backbone_of(weights_of(timm.create_model(name), name))
    assert found['type'] == f'mmclca.{kind}'
    assert tuple(found['arch'].values()) == sizes
    assert found['patch_size'] == 16


def test_models_to_choose_from():
    """Smaller images for a budget, but of what takes one size alone."""
    cait = candidates_of(SimpleNamespace(backbone=dict(type='mmclca.CaiT')))
    assert tuple(one.img_size for one in cait) == SIDES
    backbone = dict(type='mmclca.ResMLP', img_size=96)
    (resmlp,) = candidates_of(SimpleNamespace(backbone=backbone))
    assert describe(resmlp) == 'full network, 96 px'
    model = dict(backbone=backbone)
    assert resmlp.apply(model) == model


SLOW = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in ('cait', 'patchconvnet')
]


@pytest.mark.parametrize('name', ['resmlp', *SLOW])
def test_a_fit_of_the_whole_network(name, tmp_path, capsys):
    weights = MODELS.build(BACKBONES[name]).state_dict()
    path = tmp_path / f'{name}.pth'
    torch.save({f'backbone.{k}': v for k, v in weights.items()}, path)
    photographs, out = write_photographs(tmp_path), tmp_path / 'model'
    options = dict(weights=path, runtime='pytorch', folds=2)
    model = mmclca.fit(photographs, out, **options)
    said = capsys.readouterr().out
    assert 'full network, ' in said and 'full ViT' not in said
    kind = BACKBONES[name]['type'].removeprefix('mmclca.')
    assert re.search(rf'Fine-tune +skipped: .*{kind}', said)
    cost = model.facts['cost']
    assert cost['gmacs_full'] == cost['gmacs'] > 0 < cost['ms_full']
    assert model.facts['model']['depth'] == 3
    assert model.facts['model']['layers'] is None
    results = model.predict(photographs)
    assert len(results) == 16 and all('pred_class' in r for r in results)
    assert mmclca.fit(photographs, out, **options).accuracy


def file_of(backbone, **meta):
    """A checkpoint of a backbone, and what is stored beside its weights."""
    weights = built(backbone).state_dict()
    weights = {f'backbone.{k}': v for k, v in weights.items()}
    return dict(state_dict=name_source(weights, 'w.pth'), meta=meta)


def config_of(backbone):
    return f'model = {dict(backbone=backbone)}'


EPS = dict(norm_cfg=dict(type='LN', eps=1e-3))
NO_RELEASE = [  # and a parameter that tells
    ('cait', dict(talking_heads=False), 'mix_logits.weight is missing'),
    ('cait', dict(cls_at=0, num_class_layers=0), 'class_layers.0.ln1'),
    ('cait', dict(in_channels=1), r'\(16, 3, 8, 8\)'),
    ('resmlp', dict(norm_cfg=dict(type='LN')), 'norm1.alpha is missing'),
    ('resmlp', dict(communication='conv'), 'mix.weight is missing'),
    ('patchconvnet', dict(pooling='average'), 'pool.cls_token is missing'),
    ('patchconvnet', dict(stem=None), 'projection.weight is'),
    ('patchconvnet', dict(multiclass=5), r'\(1, 5, 16\), .* \(1, 1, 16\)'),
]
IN_CONFIG = [  # what names and shapes do not tell
    ('cait', dict(cls_at=0, reducer=dict(type='mmclca.ToMe'), reduce_at=1)),
    ('patchconvnet', dict(num_heads=2)),
    ('resmlp', dict(communication='none', arch='s12')),
    *((name, EPS) for name in ('cait', 'patchconvnet')),
]


@pytest.mark.parametrize('name, options, told', NO_RELEASE)
def test_what_is_not_of_the_releases(name, options, told):
    """Refused as weights alone, and taken with the config of its model."""
    backbone = dict(BACKBONES[name], **options)
    kind = backbone['type']
    with pytest.raises(CheckpointError, match=told) as refused:
        backbone_of(file_of(backbone)['state_dict'])
    line = str(refused.value)
    assert line.startswith('w.pth') and kind in line
    assert 'tools/train.py' in line and '\n' not in line
    stored = file_of(backbone, cfg=config_of(backbone))
    if {'in_channels', 'multiclass'} & {*options}:  # fit leaves no choice
        with pytest.raises(CheckpointError, match=told):
            backbone_of(stored)
        return
    found = backbone_of(stored)
    assert {*backbone} - {*found} <= {'img_size'}
    assert backbone | found == backbone


@pytest.mark.parametrize('name, options', IN_CONFIG)
def test_what_no_weight_tells_is_in_the_config(name, options):
    backbone = dict(BACKBONES[name], **options)
    found = backbone_of(file_of(backbone, cfg=config_of(backbone)))
    told = {k: v for k, v in backbone.items() if k in found and k != 'arch'}
    assert found == dict(told, arch=found['arch'])
    assert found['arch']['num_layers'] == (12 if 'arch' in options else 3)


CAIT = BACKBONES['cait']
OTHERS = [  # of configs beside the weights of a CaiT
    (config_of(dict(CAIT, talking_heads=False)), 'mix_logits'),
    (config_of(dict(CAIT, class_layers=2)), 'class_layers'),
    ('import os\nmodel = dict(backbone=dict())', 'w.pth.*import os'),
]


@pytest.mark.parametrize('text, told', OTHERS)
def test_a_config_of_another_network_or_of_none(text, told):
    with pytest.raises((CheckpointError, ValueError), match=told):
        backbone_of(file_of(CAIT, cfg=text))


def test_images_that_are_no_squares_are_refused():
    backbone = dict(BACKBONES['resmlp'], img_size=(24, 32))
    with pytest.raises(CheckpointError, match=r'\(12, 12\), .* \(9, 9\)'):
        backbone_of(file_of(backbone))
    backbone = dict(CAIT, img_size=(16, 64))  # 16 patches
    with pytest.raises(CheckpointError, match=r'\(16, 64\) px in \(2, 8\)'):
        backbone_of(file_of(backbone, cfg=config_of(backbone)))
