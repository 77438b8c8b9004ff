# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Head with scores by cosine similarity."""

import pytest
import torch
from mmpretrain.structures import DataSample
from small_models import build, classifier, images, vit

import mmclca
from mmclca.registry import MODELS

COSINE = dict(type='mmclca.CosineClsHead', num_classes=3, in_channels=16)


def test_cosine_scores_do_not_depend_on_feature_length():
    head = MODELS.build(dict(COSINE, scale=4))
    feature = torch.randn(2, 16)
    scores = head((feature,))
    expected = torch.cosine_similarity(
        feature[:, None], head.weight[None], dim=-1
    )
    torch.testing.assert_close(scores, 4 * expected)
    torch.testing.assert_close(head((5 * feature,)), scores)


def test_cosine_head_trains_on_a_backbone():
    model = build(dict(classifier(vit(2)), head=COSINE)).train()
    samples = [DataSample().set_gt_label(i) for i in range(2)]
    model(images(2), samples, mode='loss')['loss'].backward()
    assert model.head.weight.grad.any()


def test_cosine_head_refuses_wrong_scale_and_channels():
    with pytest.raises(mmclca.Error, match='scale'):
        MODELS.build(dict(COSINE, scale=-1))
    with pytest.raises(mmclca.Error, match='in_channels'):
        build(dict(classifier(vit(2)), head=dict(COSINE, in_channels=8)))
