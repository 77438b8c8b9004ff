# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Losses, bank and scores of Grafit: loops, properties, invalid input."""

import math

import pytest
import torch
import torch.nn.functional as F

from mmclca.models.retrievers import nearest_votes
from mmclca.models.selfsup.grafit import (
    instance_loss,
    knn_loss,
    knn_scores,
    ranking_scores,
    update_bank,
)


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


def test_grafit_scores_keep_order_and_shift(drawn):
    embedding, bank, index, labels = drawn
    assert knn_loss(embedding, bank, index, 0 * labels).item() == 0
    embedding.requires_grad_()
    knn_loss(embedding, bank, index, labels).backward()
    assert embedding.grad.isfinite().all() and embedding.grad[1].eq(0).all()
    views = [embedding.detach()] * 3
    near(instance_loss(views, [5 * view for view in views]), -1)
    coarse = labels % 2
    rank = {
        name: ranking_scores(
            embedding.detach(), bank, coarse, name, query_coarse=coarse[index]
        )
        for name in ('cosine', 'conditional', 'oracle')
    }
    for name in rank:
        for label in (0, 1):  # order within a class is kept
            inside = [rank[x][:, coarse == label] for x in ('cosine', name)]
            assert inside[0].argsort().equal(inside[1].argsort())
    order = coarse[rank['oracle'].argsort(dim=1, descending=True)]
    first = order == coarse[index][:, None]
    assert first.long().diff(dim=1).le(0).all()
    similarity = rank['cosine']
    votes = [nearest_votes(similarity + c, labels, 4, 5, 0.05) for c in (0, 3)]
    near(votes[0], votes[1])
    constant = ranking_scores(
        embedding.detach(), bank, 0 * coarse, 'conditional'
    )
    assert constant.argsort().equal(rank['cosine'].argsort())


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
