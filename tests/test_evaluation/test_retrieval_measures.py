# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import pytest
import torch

from mmclca.evaluation.retrieval import (
    RetrievalMetric,
    average_precision,
    measure_queries,
)
from mmclca.models.retrievers import nearest_votes


@pytest.fixture
def rankings():
    """Similarities of 9 queries to 12 images, and the relevant images."""
    torch.manual_seed(0)
    similarity = torch.randn(9, 12, dtype=torch.float64)
    relevant = torch.rand(9, 12) < 0.3
    relevant[:, 0] = True
    return similarity, relevant


def recall_at(k, similarity, relevant):
    return measure_queries(similarity, relevant, (k,))[f'recall@{k}']


def slow_average_precision(similarity, relevant):
    order = sorted(range(len(similarity)), key=lambda i: -similarity[i])
    found, precisions = 0, []
    for rank, i in enumerate(order, 1):
        if relevant[i]:
            found += 1
            precisions.append(found / rank)
    return sum(precisions) / len(precisions)


def test_average_precision_equals_a_slow_loop(rankings):
    expected = [
        slow_average_precision(*map(torch.Tensor.tolist, pair))
        for pair in zip(*rankings, strict=True)
    ]
    assert average_precision(*rankings).tolist() == pytest.approx(expected)


@pytest.mark.parametrize('k', [1, 3, 5, 99])
def test_recall_equals_a_slow_loop(rankings, k):
    expected = [
        float(any(relevant[i] for i in row.argsort(descending=True)[:k]))
        for row, relevant in zip(*rankings, strict=True)
    ]
    assert recall_at(k, *rankings).tolist() == expected


def test_excluded_images_do_not_count(rankings):
    similarity, relevant = (part.clone() for part in rankings)
    similarity[0, 0] = -torch.inf
    found = average_precision(similarity, relevant)[0]
    rest = average_precision(similarity[:1, 1:], relevant[:1, 1:])[0]
    assert found == rest
    relevant[0, 1:] = False
    assert average_precision(similarity, relevant)[0].isnan()
    assert recall_at(5, similarity, relevant).isnan().tolist() == (
        [True] + [False] * 8
    )


def test_nearest_votes_equal_a_slow_loop(rankings):
    similarity = rankings[0]
    labels = torch.tensor([0, 1, 2] * 4)
    found = nearest_votes(similarity, labels, 3, k=5, temperature=0.5)
    for row, scores in zip(similarity, found, strict=True):
        votes = [0.0, 0.0, 0.0]
        for i in row.argsort(descending=True)[:5]:
            votes[labels[i]] += math.exp(row[i] / 0.5)
        expected = [vote / sum(votes) for vote in votes]
        assert scores.tolist() == pytest.approx(expected)


def test_nearest_votes_limit_k_to_the_gallery(rankings):
    labels = torch.arange(12)
    one = nearest_votes(rankings[0], labels, 12, k=1)
    assert torch.equal(one.argmax(1), rankings[0].argmax(1))
    assert (one.max(1).values == 1).all()
    assert nearest_votes(rankings[0], labels, 12, k=99).sum(1).tolist() == (
        pytest.approx([1] * 9)
    )


def evaluated(rankings, **options):
    metric = RetrievalMetric(**options)
    for scores, relevant in zip(*rankings, strict=True):
        sample = dict(pred_score=scores, gt_score=relevant.float())
        metric.process(None, [sample])
    return metric.evaluate(len(rankings[0]))


def test_metric_is_the_mean_over_matched_queries(rankings):
    found = evaluated(rankings, topk=(1, 5))
    precision = average_precision(*rankings).mean().item() * 100
    recall = recall_at(5, *rankings).mean().item() * 100
    assert found['retrieval/mAP'] == pytest.approx(precision)
    assert found['retrieval/recall@5'] == pytest.approx(recall)
    assert found['retrieval/unmatched'] == 0
    similarity, relevant = rankings
    relevant[3] = False
    kept = [i for i in range(9) if i != 3]
    fewer = evaluated((similarity, relevant), topk=(1,))
    rest = average_precision(similarity[kept], relevant[kept]).mean()
    assert fewer['retrieval/mAP'] == pytest.approx(rest.item() * 100)
    assert fewer['retrieval/unmatched'] == 1


def test_metric_refuses_unmatched_queries_and_invalid_k(rankings):
    with pytest.raises(ValueError, match='9 queries'):
        evaluated((rankings[0], torch.zeros_like(rankings[1])))
    for topk in ((), (0,), (1.5,)):
        with pytest.raises(ValueError, match='topk='):
            RetrievalMetric(topk=topk)
