# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Classifiers with contrastive losses; the two views of CLE-ViT."""

import numpy as np
import pytest
import torch
from mmpretrain.structures import DataSample
from small_models import arch, images

from mmclca.models.baselines import losses
from mmclca.registry import MODELS, TRANSFORMS

HEAD = dict(type='LinearClsHead', num_classes=4, in_channels=16)
BACKBONE = dict(
    type='VisionTransformer', arch=arch(2), img_size=32, patch_size=8
)
LABELS = [0, 1, 1, 3]


def built(kind, **options):
    config = dict(type=f'mmclca.{kind}', backbone=BACKBONE, head=HEAD)
    return MODELS.build(dict(config, **options))


def samples(labels=LABELS):
    return [DataSample().set_gt_label(label) for label in labels]


@pytest.mark.parametrize('contrast', ['transfg', 'sim_trans'])
def test_contrastive_classifier_adds_contrast_to_head_loss(contrast):
    options = dict(contrast=contrast, margin=0.2, contrast_weight=0.5)
    model, x = built('ContrastiveClassifier', **options), images(4)
    found = model.loss(x, samples())
    feats = model.extract_feat(x)
    assert found['loss'] == model.head.loss(feats, samples())['loss']
    loss = getattr(losses, f'{contrast}_contrast')
    expected = 0.5 * loss(feats[-1], torch.tensor(LABELS), margin=0.2)
    assert found['loss_contrast'] == expected


def test_cle_vit_classifier_computes_released_loss():
    weights = dict(origin_weight=1.0, swap_weight=0.75, contrast_weight=2.0)
    model = built('CLEViTClassifier', **weights, label_smoothing=0.1)
    first, second = images(4), images(4).flip(-1)
    found = model.loss(torch.cat((first, second), dim=-1), samples())
    feats = model.extract_feat(torch.cat((first, second)))
    given = model.head(feats), feats[-1], torch.tensor(LABELS)
    weights = losses.CLEViTWeights(1.0, 0.75, 2.0, 0.1)
    expected = losses.cle_vit_loss(*given, weights)
    assert found.keys() == {'loss'}
    torch.testing.assert_close(found['loss'], expected)


def test_cle_vit_classifier_adds_triplet_loss():
    options = dict(contrast='triplet', margin=0.7, contrast_weight=3.0)
    model, x = built('CLEViTClassifier', **options), images(4)
    views = torch.cat(x.chunk(2), dim=-1)
    found = model.loss(views, samples(LABELS[:2]))
    (features,) = model.extract_feat(x)
    triplet = losses.cle_vit_triplet(features, torch.tensor([1, 0]), 0.7)
    torch.testing.assert_close(found['loss_triplet'], 3 * triplet)
    assert found['loss'] > 0


@pytest.mark.parametrize(
    ('options', 'x', 'term'),
    [
        ({}, torch.zeros(4, 3, 32, 32), '32 x 32'),
        ({}, torch.zeros(4, 3, 32, 65), '32 x 65'),
        (dict(contrast='triplet'), torch.zeros(1, 3, 32, 64), 'drop_last'),
    ],
)
def test_cle_vit_classifier_refuses_batch(options, x, term):
    model = built('CLEViTClassifier', **options)
    with pytest.raises(ValueError, match=term):
        model.loss(x, samples()[: len(x)])


def test_shuffled_view_erases_and_permutes_second_view():
    flip = dict(type='RandomFlip', prob=1.0)
    config = dict(type='mmclca.ShuffledView', transforms=[flip], parts=(3, 2))
    view = TRANSFORMS.build(config)
    img = np.random.default_rng(0).integers(130, 255, (24, 36, 3), np.uint8)
    results = view(dict(img=img.copy(), img_path='leaf.png'))
    first, second = np.split(results['img'], 2, axis=1)
    assert (first == img[:, ::-1]).all()
    erased = second < 130
    assert 0.12 < erased.mean() < 0.48
    assert (second[erased.any(axis=-1)] == (103, 116, 123)).all()
    cells, plain = (
        half.reshape(2, 12, 3, 12, 3).swapaxes(1, 2).reshape(6, -1)
        for half in (second, first)
    )
    # each part that is not entirely erased matches one plain part
    left = [cell for cell in cells if (cell > 129).any()]
    places = [
        [i for i, old in enumerate(plain) if (old == cell)[cell > 129].all()]
        for cell in left
    ]
    assert all(len(found) == 1 for found in places)
    assert len({found[0] for found in places}) == len(left)
