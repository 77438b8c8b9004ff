# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Losses, bank and scores of Grafit: loops, properties, invalid input."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from mmclca.models.selfsup import moco_v3_loss
from mmclca.models.selfsup.grafit import (
    instance_loss,
    knn_loss,
    knn_scores,
    ranking_scores,
    update_bank,
)
from mmclca.registry import MODELS


def near(found, expected):
    expected = torch.as_tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.fixture
def drawn():
    """Embeddings of 5 of 12 images, one the only image of its class."""
    torch.manual_seed(0)
    bank = torch.randn(12, 6, dtype=torch.float64)
    labels = torch.tensor([0, 1, 2, 0, 1, 3, 0, 1, 2, 0, 1, 2])
    index = torch.tensor([3, 5, 11, 0, 7])
    return torch.randn(5, 6, dtype=torch.float64), bank, index, labels


def test_grafit_losses_equal_loops(drawn):
    embedding, bank, index, labels = drawn
    cosines, each = cosine_rows(embedding, bank), []
    for row, i in zip(cosines, index.tolist(), strict=True):
        others = [j for j in range(12) if j != i]
        same = [j for j in others if labels[j] == labels[i]]
        sums = [sum(math.exp(row[j] / 0.1) for j in x) for x in (same, others)]
        each.append(-math.log(sums[0] / sums[1]) if same else 0.0)
    near(knn_loss(*drawn, 0.1, 'none'), each)
    near(knn_loss(*drawn, 0.1), sum(each) / 5)
    near(knn_loss(*drawn, 0.1, 'counted'), sum(each) / 4)
    views = torch.randn(2, 3, 4, 6).double().unbind()
    pairs = [
        F.cosine_similarity(views[0][i], views[1][j], dim=-1).mean()
        for i in range(3)
        for j in range(3)
        if i != j
    ]
    near(instance_loss(*views), -sum(pairs) / 6)


def cosine_rows(queries, bank):
    return F.cosine_similarity(queries[:, None], bank, dim=-1).tolist()


def test_knn_loss_is_zero_without_other_classes(drawn):
    embedding, bank, index, labels = drawn
    assert knn_loss(embedding, bank, index, 0 * labels).item() == 0
    embedding.requires_grad_()
    knn_loss(embedding, bank, index, labels).backward()
    assert embedding.grad.isfinite().all() and embedding.grad[1].eq(0).all()


def test_rankings_and_votes_equal_definition(drawn):
    embedding, bank, index, labels = drawn
    coarse, cosines = labels % 2, cosine_rows(embedding, bank)
    cosines = torch.tensor(cosines, dtype=torch.float64)
    given = dict(sigma=0.1, query_coarse=coarse[index])
    found = {
        name: ranking_scores(embedding, bank, coarse, name, **given)
        for name in ('cosine', 'conditional', 'oracle')
    }
    near(found['cosine'], cosines)
    odd = (cosines / 0.1).softmax(dim=1)[:, coarse == 1].sum(1, keepdim=True)
    share = torch.where(coarse == 1, odd, 1 - odd)
    near(found['conditional'], cosines + share.logit())
    other = coarse[index][:, None] != coarse
    near(found['oracle'], cosines - 2.5 * other)
    votes = knn_scores(embedding, bank, labels, 12, 0.1, 4)
    near(votes, (cosines / 0.1).softmax(dim=1) @ F.one_hot(labels).double())


def test_moco_v3_loss_equals_mmpretrain():
    head = dict(
        type='MoCoV3Head',
        predictor=dict(type='LinearNeck', in_channels=8, out_channels=8),
        loss=dict(type='CrossEntropyLoss', loss_weight=0.4),
        temperature=0.2,
    )
    built = MODELS.build(head)
    built.predictor = nn.Identity()
    q1, q2, k1, k2 = torch.randn(4, 6, 8)
    expected = built.loss(q1, k2) + built.loss(q2, k1)
    torch.testing.assert_close(moco_v3_loss(q1, q2, k1, k2, 0.2), expected)


@pytest.mark.parametrize(
    ('call', 'message'),
    [
        (lambda e, b, i, y: knn_loss(e, b, i + 8, y), 'index=13 is not'),
        (lambda e, b, i, y: knn_loss(e, b, i, y, 1, 'sum'), "no 'sum'"),
        (lambda e, b, i, y: update_bank(b, e, -i), 'index=-3 is not'),
        (lambda e, b, i, y: instance_loss([e], [e]), '2 or more'),
        (lambda e, b, i, y: knn_scores(e, b, y, 13, 1, 4), 'k=13 must be'),
        (lambda e, b, i, y: ranking_scores(e, b, y, 'best'), "no 'best'"),
        (lambda e, b, i, y: ranking_scores(e, b, y, 'oracle'), 'query_coarse'),
    ],
)
def test_grafit_functions_are_refused_if_input_is_invalid(
    drawn, call, message
):
    with pytest.raises(ValueError, match=message):
        call(*drawn)
