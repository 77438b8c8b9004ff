# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Losses of the baselines against loops over pairs."""

import pytest
import torch

from mmclca.models.baselines.losses import (
    CLEViTWeights,
    cle_vit_loss,
    cle_vit_triplet,
    sim_trans_contrast,
    transfg_contrast,
)
from mmclca.models.baselines.shuffled_view import shuffle_parts

LABELS = torch.tensor([2, 0, 2, 1, 0, 0, 3])
FEATURES = torch.randn(
    7, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64
)


def cosine(a, b):
    return float(a @ b / (a.norm() * b.norm()))


def pairs(features, labels):
    """Cosine, same class and same image for each pair."""
    return [
        [(cosine(a, b), y == z, i == j) for j, (b, z) in enumerate(rows)]
        for rows in [list(zip(features, labels.tolist(), strict=True))]
        for i, (a, y) in enumerate(rows)
    ]


def slow_transfg(features, labels, margin):
    terms = [
        1 - c if same else max(c - margin, 0)
        for row in pairs(features, labels)
        for c, same, _ in row
    ]
    return sum(terms) / len(terms)


def slow_sim_trans(features, labels, margin):
    total = 0
    for row in pairs(features, labels):
        own = [(1 - c) / 2 for c, same, itself in row if same and not itself]
        bound = margin + sum(own) / (len(own) + 1e-6)
        total += sum(1 - c for c, same, _ in row if same)
        total += sum(
            1 + c for c, same, _ in row if not same and (1 - c) / 2 <= bound
        )
    return total / len(features) ** 2


SLOW = [(transfg_contrast, slow_transfg), (sim_trans_contrast, slow_sim_trans)]


@pytest.mark.parametrize(('loss', 'slow'), SLOW)
def test_contrast_equals_loop_over_pairs(loss, slow):
    views = torch.cat((FEATURES, FEATURES.flip(1)))
    expected = slow(views, LABELS.repeat(2), 0.1)
    assert loss(views, LABELS, 0.1).item() == pytest.approx(expected)


@pytest.mark.parametrize('loss', [transfg_contrast, sim_trans_contrast])
def test_contrast_gradient_is_finite_for_one_zero_image(loss):
    features = torch.zeros(1, 4, requires_grad=True)
    loss(features, torch.tensor([0])).backward()
    assert features.grad.isfinite().all()


def test_cle_vit_loss_smooths_labels():
    labels, logp = LABELS[:3], FEATURES[:6].log_softmax(dim=-1)
    own = logp[torch.arange(6), labels.repeat(2)]
    terms = -0.8 * own - 0.2 * logp.mean(dim=-1)
    weights = CLEViTWeights(1, 0.5, 0, label_smoothing=0.2)
    found = cle_vit_loss(FEATURES[:6], FEATURES[:6], labels, weights)
    expected = terms[:3].mean() + 0.5 * terms[3:].mean()
    torch.testing.assert_close(found, expected)


def test_cle_vit_triplet_equals_loop():
    negative, unit = [2, 0, 1], [x / x.norm() for x in FEATURES[:6]]
    terms = [
        max(
            0,
            0.8 + (unit[i] - unit[3 + i]).norm() - (unit[i] - unit[j]).norm(),
        )
        for i, j in enumerate(negative)
    ]
    found = cle_vit_triplet(FEATURES[:6], torch.tensor(negative), 0.8)
    assert found.item() == pytest.approx(float(sum(terms)) / 3)


def test_shuffle_parts_permutes_columns_and_rows():
    image = torch.arange(2 * 4 * 6).reshape(2, 4, 6)
    shuffled = shuffle_parts(image, (3, 2), [5, 1, 2, 3, 4, 0])
    assert torch.equal(shuffled[:, :2, :2], image[:, 2:, 4:])
    assert torch.equal(shuffled[:, 2:, 4:], image[:, :2, :2])
    assert torch.equal(shuffled[:, :, 2:4], image[:, :, 2:4])
    assert torch.equal(shuffle_parts(image, 2, range(4)), image)


@pytest.mark.parametrize(
    ('parts', 'permutation', 'term'),
    [
        ((1, 8), range(8), 'parts='),
        (0, [], 'parts=0'),
        (2, [0, 1, 2, 2], 'permutation='),
    ],
)
def test_shuffle_parts_refuses_arguments(parts, permutation, term):
    with pytest.raises(ValueError, match=term):
        shuffle_parts(torch.zeros(3, 4, 6), parts, permutation)
