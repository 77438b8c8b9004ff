# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Head with one vector per class, and loading from a linear head."""

import pytest
import torch
from mmengine.logging import MMLogger
from small_models import build, images, vit

from mmclca.checkpoints.loading import load_trained
from mmclca.registry import MODELS

ARCH = dict(embed_dims=32, num_layers=2)
HEAD = dict(type='mmclca.PerClassHead', num_classes=3, in_channels=32)
LINEAR = dict(HEAD, type='LinearClsHead')


def classifier(multiclass=False, head=LINEAR, **options):
    backbone = dict(type='mmclca.PatchConvNet', arch=ARCH, img_size=32)
    backbone.update(multiclass=multiclass, **options)
    return dict(type='ImageClassifier', backbone=backbone, head=head)


@pytest.fixture
def one_query(tmp_path):
    """A model with one query, and its checkpoint."""
    model = build(classifier())
    torch.save(model.state_dict(), tmp_path / 'one.pth')
    return model, str(tmp_path / 'one.pth')


def test_per_class_head_loads_linear_head(one_query, monkeypatch):
    model, path = one_query
    said = []
    logger = MMLogger.get_current_instance()
    monkeypatch.setattr(logger, 'info', said.append)
    each = MODELS.build(classifier(3, HEAD))
    report = load_trained(each, path)
    assert torch.equal(
        each.backbone.pool.cls_token,
        model.backbone.pool.cls_token.expand(1, 3, -1),
    )
    assert torch.equal(each.head.weight, model.head.fc.weight)
    assert torch.equal(each.head.bias, model.head.fc.bias)
    assert report.resized == [
        'backbone.pool.cls_token from one query to one for each of 3 classes'
    ]
    assert not report.new and not report.unused
    assert 'the linear head head.fc' in said[0]


def test_per_class_head_is_refused_if_shapes_differ():
    """In a plain classifier, only the head can check the shapes."""
    for multiclass, shape in ((False, '1, 32'), (4, '1, 4, 32')):
        model = MODELS.build(classifier(multiclass, HEAD))
        with pytest.raises(ValueError, match=rf'found \({shape}\)'):
            model(images(1))


def test_per_class_head_needs_a_neck():
    cfg = dict(
        type='mmclca.TokenReductionClassifier',
        backbone=vit(1),
        head=dict(HEAD, in_channels=16),
    )
    with pytest.raises(ValueError, match='AttentionPool'):
        MODELS.build(cfg)
    cfg['backbone']['out_type'] = 'featmap'
    pool = dict(type='mmclca.AttentionPool', in_channels=16, multiclass=3)
    model = MODELS.build(dict(cfg, neck=pool))
    assert model(images(2)).shape == (2, 3)
