# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Heads over two class tokens, and over one vector per class."""

import pytest
import torch
from mmengine.logging import MMLogger
from mmpretrain.models.heads import DeiTClsHead
from mmpretrain.structures import DataSample
from small_models import build, classifier, images, vit
from torch.nn import functional as F

from mmclca.checkpoints.load import load
from mmclca.models.classifiers import extract_feature
from mmclca.models.reduction.attention import attend
from mmclca.registry import MODELS
from mmclca.visualization.rollout import rollout

DISTILLED = dict(type='mmclca.DistilledHead', num_classes=5, in_channels=16)
PER_CLASS = dict(type='mmclca.PerClassHead', num_classes=3, in_channels=32)
LINEAR = dict(PER_CLASS, type='LinearClsHead')


@pytest.fixture
def feats():
    """CLS and distillation tokens of an unused layer and the last one."""
    return tuple(torch.randn(3, 2, 16) for _ in range(2))


def distilled(num_layers=2):
    """A small distilled classifier."""
    config = classifier(vit(num_layers, dist_token=True))
    return build(dict(config, head=DISTILLED)).eval()


def test_distilled_head_loss_is_mean_of_both(feats):
    head = build(dict(DISTILLED, cal_acc=True))
    cls, dist = head(feats)
    last = feats[-1]
    assert torch.equal(cls, head.layers.head(last[:, 0]))
    assert torch.equal(dist, head.layers.head_dist(last[:, 1]))
    labels = torch.tensor([4, 0, 2])
    each = [F.cross_entropy(scores, labels) for scores in (cls, dist)]
    samples = [DataSample().set_gt_label(label) for label in labels]
    losses = head.loss(feats, samples)
    assert losses['loss'] == sum(each) / 2
    (right,) = losses['accuracy_top-1']
    assert right == 100 * (cls.argmax(1) == labels).float().mean()
    assert head.eval().loss(feats, samples)['loss'] == losses['loss']


def test_distilled_head_loads_mmpretrain_weights(feats):
    theirs = DeiTClsHead(5, 16, init_cfg=None).eval()
    ours = MODELS.build(DISTILLED).eval()
    ours.load_state_dict(theirs.state_dict())
    tokens = tuple((feat[:, 0], feat[:, 1]) for feat in feats)
    assert torch.equal(ours(feats), theirs(tokens))


def test_distilled_features_are_both_tokens():
    model, x = distilled(), images()
    (tokens,) = model.extract_feat(x, stage='backbone')
    both = model.extract_feat(x, stage='pre_logits')
    assert torch.equal(both, tokens.flatten(1)) and both.shape == (2, 32)
    assert torch.equal(extract_feature(model, x, 'backbone'), tokens[:, 0])


@torch.no_grad()
def test_rollout_excludes_distillation_token():
    model, x = distilled(num_layers=1), images()
    layer, (tokens, _) = model.backbone.layers[0], model.backbone.embed(x)
    _, attended = attend(layer.attn, layer.ln1(tokens.features))
    row = attended.cls_attn().mean(dim=1)[:, 2:] / 2
    assert torch.allclose(rollout(model, x).flatten(1), row)


def patch_convnet(multiclass=False, head=LINEAR):
    arch = dict(embed_dims=32, num_layers=2)
    backbone = dict(type='mmclca.PatchConvNet', arch=arch, img_size=32)
    backbone['multiclass'] = multiclass
    return dict(type='ImageClassifier', backbone=backbone, head=head)


def resnet(multiclass=False, head=LINEAR):
    backbone = dict(type='ResNet', depth=18, base_channels=4, stem_channels=4)
    pool = dict(type='mmclca.AttentionPool', in_channels=32)
    parts = dict(backbone=backbone, neck=dict(pool, multiclass=multiclass))
    return dict(parts, type='ImageClassifier', head=head)


@pytest.mark.parametrize(
    'config, pool', [(patch_convnet, 'backbone.pool'), (resnet, 'neck')]
)
def test_per_class_head_loads_linear_head(config, pool, tmp_path, monkeypatch):
    model, said = build(config()), []
    torch.save(model.state_dict(), tmp_path / 'one.pth')
    logger = MMLogger.get_current_instance()
    monkeypatch.setattr(logger, 'info', said.append)
    each = MODELS.build(config(3, PER_CLASS))
    report = load(each, str(tmp_path / 'one.pth'))
    query = model.get_submodule(pool).cls_token
    queries = each.get_submodule(pool).cls_token
    assert torch.equal(queries, query.expand(1, 3, -1))
    assert torch.equal(each.head.weight, model.head.fc.weight)
    assert torch.equal(each.head.bias, model.head.fc.bias)
    if pool == 'backbone.pool':
        assert report.resized == [
            f'{pool}.cls_token from one query to one for each of 3 classes'
        ]
    assert not report.new and not report.unused
    assert 'the linear head head.fc' in said[0]
    assert each.eval()(images(2, 64, 96)).shape == (2, 3)


def test_per_class_head_is_refused_if_shapes_differ():
    """In a plain classifier, only the head can check the shapes."""
    for multiclass, shape in ((False, '1, 32'), (4, '1, 4, 32')):
        model = MODELS.build(patch_convnet(multiclass, PER_CLASS))
        with pytest.raises(ValueError, match=rf'found \({shape}\)'):
            model(images(1))


def test_per_class_head_accepts_pooled_map_of_vit():
    pool = dict(type='mmclca.AttentionPool', in_channels=16, multiclass=3)
    config = classifier(vit(1, out_type='featmap'), neck=pool)
    config['head'] = dict(PER_CLASS, in_channels=16)
    assert MODELS.build(config)(images(2)).shape == (2, 3)
