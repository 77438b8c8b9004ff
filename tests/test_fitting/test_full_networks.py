# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit CaiT, ResMLP and PatchConvNet, which cannot be reduced by fit."""

import re
from types import SimpleNamespace

import pytest
import torch
from small_models import PATCH_CONVNET, RESMLP, arch
from tiny_photos import write_photos

import mmclca
from mmclca.fitting.candidates import IMAGE_SIZES, list_variants
from mmclca.fitting.record_parts import describe_variant
from mmclca.registry import MODELS

CAIT = dict(type='mmclca.CaiT', arch=arch(2), img_size=32, patch_size=8)
SLOW = [pytest.param(x, marks=pytest.mark.slow) for x in (CAIT, PATCH_CONVNET)]


def test_candidates_have_smaller_images_if_size_is_free():
    """A budget allows smaller images, unless the size is fixed."""
    backbone = dict(type='mmclca.CaiT')
    cait = list_variants(SimpleNamespace(backbone=backbone, is_vit=False))
    assert tuple(one.img_size for one in cait) == IMAGE_SIZES
    backbone = dict(type='mmclca.ResMLP', img_size=96)
    network = SimpleNamespace(backbone=backbone, is_vit=False)
    (resmlp,) = list_variants(network)
    assert describe_variant(resmlp) == 'full network, 96 px'
    model = dict(backbone=backbone)
    assert resmlp.apply(model) == model


@pytest.mark.parametrize('backbone', [RESMLP, *SLOW])
def test_fit_uses_the_full_network(backbone, tmp_path, capsys):
    weights = MODELS.build(backbone).state_dict()
    path = tmp_path / 'weights.pth'
    torch.save({f'backbone.{k}': v for k, v in weights.items()}, path)
    photos, out = write_photos(tmp_path), tmp_path / 'model'
    options = dict(weights=path, runtime='pytorch', folds=2, verbose=True)
    model = mmclca.fit(photos, out, **options)
    said = capsys.readouterr().out
    assert 'full network, ' in said and 'full ViT' not in said
    kind = backbone['type'].removeprefix('mmclca.')
    assert re.search(rf'Fine-tune +skipped: .*{kind}', said)
    cost = model.facts['cost']
    assert cost['gmacs_full'] == cost['gmacs'] > 0 < cost['ms_full']
    assert model.facts['model']['depth'] == backbone['arch']['num_layers']
    assert model.facts['model']['layers'] is None
    results = model.predict(photos)
    assert len(results) == 16 and all('pred_class' in r for r in results)
    assert mmclca.fit(photos, out, **options).accuracy
