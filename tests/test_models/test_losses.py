# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import pytest
import torch
from mmpretrain.structures import DataSample
from torch.nn.functional import binary_cross_entropy, one_hot

from mmclca.registry import MODELS

BCE = dict(type='mmclca.ThresholdedBCE')


def test_bce_target_is_one_for_each_mixed_class():
    scores = torch.randn(3, 5).double()
    labels = torch.tensor([0, 3, 4])
    mixed = 0.3 * one_hot(labels, 5) + 0.7 * one_hot(labels.flip(0), 5)
    loss = MODELS.build(BCE)
    targets = (mixed > 0).double()
    assert targets.sum(1).tolist() == [2, 1, 2]
    expected = binary_cross_entropy(scores.sigmoid(), targets)
    assert torch.allclose(loss(scores, mixed), expected)
    plain = binary_cross_entropy(scores.sigmoid(), one_hot(labels, 5).double())
    assert torch.allclose(loss(scores, labels), plain)
    half = MODELS.build(dict(BCE, threshold=0.5, loss_weight=2))
    targets = (mixed > 0.5).double()
    expected = 2 * binary_cross_entropy(scores.sigmoid(), targets)
    assert torch.allclose(half(scores, mixed), expected)


def test_bce_in_a_head_is_mean_over_images_and_classes():
    head = dict(type='LinearClsHead', num_classes=50, in_channels=4)
    samples = [DataSample().set_gt_score(torch.eye(50)[n]) for n in range(3)]
    feats = (torch.zeros(3, 4),)
    for loss, scale in (
        (BCE, 1),
        (dict(type='CrossEntropyLoss', use_sigmoid=True), 50),
    ):
        built = MODELS.build(dict(head, loss=loss))
        torch.nn.init.zeros_(built.fc.bias)
        value = built.loss(feats, samples)['loss'].item()
        assert value == pytest.approx(scale * math.log(2))
