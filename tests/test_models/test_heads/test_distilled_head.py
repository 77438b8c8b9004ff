# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
import toy_backbones  # noqa: F401, registers them
from mmpretrain.models.heads import DeiTClsHead
from mmpretrain.structures import DataSample
from small_models import build, classifier, images, vit
from torch.nn import functional as F

from mmclca.models import CLAHead
from mmclca.models.classifiers import feature_of
from mmclca.models.reduction.attention import attend
from mmclca.registry import MODELS
from mmclca.visualization.rollout import rollout

HEAD = dict(type='mmclca.DistilledHead', num_classes=5, in_channels=16)
ONE_LAYER = vit(1, dist_token=True)


@pytest.fixture
def feats():
    """CLS and distillation tokens of an unused layer and the last one."""
    return tuple(torch.randn(3, 2, 16) for _ in range(2))


@pytest.fixture
def samples():
    return [DataSample().set_gt_label(label) for label in (4, 0, 2)]


def distilled(**options):
    """Config of a small distilled classifier."""
    return dict(
        classifier(vit(2, dist_token=True)), head=dict(HEAD, **options)
    )


def test_distilled_head_loss_is_mean_of_both(feats, samples):
    head = build(dict(HEAD, cal_acc=True))
    cls, dist = head(feats)
    last = feats[-1]
    assert torch.equal(cls, head.layers.head(last[:, 0]))
    assert torch.equal(dist, head.layers.head_dist(last[:, 1]))
    labels = torch.tensor([4, 0, 2])
    each = [F.cross_entropy(scores, labels) for scores in (cls, dist)]
    losses = head.loss(feats, samples)
    assert losses['loss'] == sum(each) / 2
    (right,) = losses['accuracy_top-1']
    assert right == 100 * (cls.argmax(1) == labels).float().mean()
    assert head.eval().loss(feats, samples)['loss'] == losses['loss']


def test_distilled_head_loads_mmpretrain_weights(feats):
    theirs = DeiTClsHead(5, 16, init_cfg=None).eval()
    ours = MODELS.build(HEAD).eval()
    ours.load_state_dict(theirs.state_dict())
    tokens = tuple((feat[:, 0], feat[:, 1]) for feat in feats)
    assert torch.equal(ours(feats), theirs(tokens))


def test_distilled_features_are_both_tokens():
    model = build(distilled()).eval()
    x = images()
    (tokens,) = model.extract_feat(x, stage='backbone')
    both = model.extract_feat(x, stage='pre_logits')
    assert torch.equal(both, tokens.flatten(1)) and both.shape == (2, 32)
    assert torch.equal(feature_of(model, x, 'backbone'), tokens[:, 0])


@torch.no_grad()
def test_rollout_excludes_distillation_token():
    model, x = build(dict(distilled(), backbone=ONE_LAYER)).eval(), images()
    layer, (tokens, _) = model.backbone.layers[0], model.backbone.embed(x)
    _, attended = attend(layer.attn, layer.ln1(tokens.x))
    row = attended.cls_attn().mean(dim=1)[:, 2:] / 2
    assert torch.allclose(rollout(model, x).flatten(1), row)


def test_cla_head_ignores_distillation_token(feats):
    head = CLAHead(5, 16, num_layers=2).eval()
    cls = tuple(feat[:, 0] for feat in feats)
    assert torch.equal(head(feats), head(cls))
