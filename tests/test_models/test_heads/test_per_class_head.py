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


def test_per_class_head_equals_one_linear_layer_per_class():
    head = build(dict(HEAD, num_classes=5, in_channels=4))
    x = torch.randn(2, 5, 4)
    for label in range(5):
        layer = torch.nn.Linear(4, 1)
        layer.weight.data, layer.bias.data = (
            head.weight[[label]].data,
            head.bias[[label]].data,
        )
        torch.testing.assert_close(head((x,))[:, [label]], layer(x[:, label]))


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


@pytest.mark.parametrize(
    'multiclass, head, shape',
    [(False, HEAD, '(1, 32)'), (4, HEAD, '(1, 4, 32)')],
    ids=str,
)
def test_per_class_head_is_refused_if_shapes_differ(multiclass, head, shape):
    """In a plain classifier, only the head can check the shapes."""
    model = MODELS.build(classifier(multiclass, head))
    with pytest.raises(ValueError) as error:
        model(images(1))
    said = str(error.value)
    assert f'(B, 3, 32), found {shape}; set multiclass=3' in said
    assert '\n' not in said


def test_per_class_head_needs_a_neck():
    cfg = dict(
        type='mmclca.TokenReductionClassifier',
        backbone=vit(1),
        head=dict(HEAD, in_channels=16),
    )
    with pytest.raises(ValueError, match='AttentionPool') as error:
        MODELS.build(cfg)
    assert '\n' not in str(error.value)
    cfg['backbone']['out_type'] = 'featmap'
    pool = dict(type='mmclca.AttentionPool', in_channels=16, multiclass=3)
    model = MODELS.build(dict(cfg, neck=pool))
    assert model(images(2)).shape == (2, 3)
