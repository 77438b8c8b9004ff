# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Attention pooling by definition, and as a ResNet's neck."""

import torch
from small_models import build, images

from mmclca.checkpoints.loading import load_trained
from mmclca.registry import MODELS


def test_resnet_with_one_query_loads_into_one_per_class(tmp_path):
    cfg = dict(
        type='ImageClassifier',
        backbone=dict(type='ResNet', depth=18, base_channels=8),
        neck=dict(type='mmclca.AttentionPool', in_channels=64),
        head=dict(type='LinearClsHead', num_classes=3, in_channels=64),
    )
    model = build(cfg)
    assert model(images(2, 64, 96)).shape == (2, 3)
    torch.save(model.state_dict(), tmp_path / 'one.pth')
    cfg['neck']['multiclass'] = 3
    cfg['head']['type'] = 'mmclca.PerClassHead'
    each = MODELS.build(cfg)
    load_trained(each, str(tmp_path / 'one.pth'))
    query = model.neck.cls_token
    assert torch.equal(each.neck.cls_token, query.expand(1, 3, -1))
    assert torch.equal(each.head.weight, model.head.fc.weight)
    assert torch.equal(each.head.bias, model.head.fc.bias)
    assert each.eval()(images(2, 64)).shape == (2, 3)
