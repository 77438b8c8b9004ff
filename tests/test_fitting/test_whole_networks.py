# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""CaiT, ResMLP and PatchConvNet: what fit reads of a file of theirs."""

import pytest
import timm
import torch
from small_models import arch
from tiny_photographs import write_photographs

import mmclca
from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.releases import name_source
from mmclca.fitting.architecture import backbone_of
from mmclca.fitting.candidates import SIDES, candidates_of
from mmclca.registry import MODELS

SIZES = dict(embed_dims=16, num_layers=3)
BACKBONES = dict(
    cait=dict(
        type='mmclca.CaiT',
        arch=arch(3),
        img_size=32,
        patch_size=8,
        num_class_layers=1,
        class_mlp_ratio=3.0,
        qkv_bias=False,
    ),
    resmlp=dict(
        type='mmclca.ResMLP',
        arch=SIZES,
        img_size=24,
        patch_size=8,
        ending='class_mlp',
    ),
    patchconvnet=dict(
        type='mmclca.PatchConvNet',
        arch=SIZES,
        img_size=32,
        class_mlp_ratio=2.0,
        qkv_bias=False,
    ),
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
    cait = candidates_of(dict(type='mmclca.CaiT'))
    assert tuple(one.img_size for one in cait) == SIDES
    (resmlp,) = candidates_of(dict(type='mmclca.ResMLP', img_size=96))
    assert resmlp.words() == 'the whole network, 96 px'
    assert resmlp.apply(dict(head='any')) == dict(head='any')


@pytest.mark.parametrize(
    'name',
    [
        'resmlp',
        *(
            pytest.param(n, marks=pytest.mark.slow)
            for n in BACKBONES
            if n != 'resmlp'
        ),
    ],
)
def test_a_fit_of_the_whole_network(name, tmp_path, capsys):
    weights = MODELS.build(BACKBONES[name]).state_dict()
    path = tmp_path / f'{name}.pth'
    torch.save({f'backbone.{k}': v for k, v in weights.items()}, path)
    photographs, out = write_photographs(tmp_path), tmp_path / 'model'
    model = mmclca.fit(photographs, out, weights=path, folds=2)
    said = capsys.readouterr().out
    assert 'the whole network, ' in said and 'the whole transf' not in said
    kind = BACKBONES[name]['type'].removeprefix('mmclca.')
    assert f'left out: with {kind} it was not measured' in said
    cost = model.facts['cost']
    assert cost['gmacs_full'] == cost['gmacs'] > 0 < cost['ms_full']
    assert model.facts['model']['depth'] == 3
    assert model.facts['model']['layers'] is None
    results = model.predict(photographs)
    assert len(results) == 16 and all('pred_class' in r for r in results)
    assert mmclca.fit(photographs, out, weights=path, folds=2).accuracy


def test_a_query_a_class_is_refused():
    model = built(dict(BACKBONES['patchconvnet'], multiclass=5))
    weights = {f'backbone.{k}': v for k, v in model.state_dict().items()}
    with pytest.raises(CheckpointError, match='w.pth .* with 5 queries, one'):
        backbone_of(name_source(weights, 'w.pth'))


def test_images_that_are_no_squares_are_refused():
    model = built(dict(BACKBONES['resmlp'], img_size=(24, 32)))
    weights = {f'backbone.{k}': v for k, v in model.state_dict().items()}
    with pytest.raises(CheckpointError, match='12 patches, which are no'):
        backbone_of(name_source(weights, 'w.pth'))
