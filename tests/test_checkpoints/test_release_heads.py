# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Linear classifiers of releases, loaded by mmengine into any head."""

import pytest
import torch
from foreign_models import CLA_HEAD, HEAD, config, theirs
from mmengine.runner import load_checkpoint

from mmclca.models.heads import last_linear
from mmclca.registry import MODELS

LINEAR = dict(HEAD, type='LinearClsHead')
KINDS = ['ImageClassifier', 'mmclca.TokenReductionClassifier']
BACKBONES = ['TokenReductionViT', 'TransFG', 'FFVT']


def build(kind, head, **options):
    model = dict(config(), type=kind, head=head)
    return MODELS.build(dict(model, backbone=model['backbone'] | options))


def loaded(here, there, folder):
    """Last layer after loading the weights of another model by mmengine."""
    torch.save(there.state_dict(), folder / 'weights.pth')
    load_checkpoint(here, str(folder / 'weights.pth'))
    return last_linear(here.head)


@pytest.mark.parametrize('head', [HEAD, LINEAR])
@pytest.mark.parametrize('backbone', BACKBONES)
def test_classifier_loads_into_linear_heads(backbone, head, tmp_path, log):
    timm, kind = theirs(), dict(type=f'mmclca.{backbone}')
    found = loaded(build(KINDS[0], head, **kind), timm, tmp_path)
    assert torch.equal(found.weight, timm.head.weight.float())
    there = build(KINDS[0], HEAD, type='VisionTransformer')
    found = loaded(build(KINDS[0], head, **kind), there, tmp_path)
    assert torch.equal(found.bias, there.head.layers.head.bias)
    assert not log


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('head', [HEAD, LINEAR, CLA_HEAD])
def test_new_classifier_is_one_line_of_the_log(kind, head, tmp_path, log):
    here = build(kind, head, final_norm=False, out_indices=[1, -1])
    loaded(here, theirs(num_classes=7), tmp_path)
    assert sum('the classifier is new' in line for line in log) == 1
