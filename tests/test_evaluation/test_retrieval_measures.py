# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import pytest
import torch

from mmclca.evaluation.retrieval import RetrievalMetric, measure_queries
from mmclca.models.retrievers import nearest_votes


@pytest.fixture
def rankings():
    """Similarities of 9 queries to 12 images, and the relevant images."""
    similarity = torch.randn(9, 12, dtype=torch.float64)
    relevant = torch.rand(9, 12) < 0.3
    relevant[:, 0] = True
    return similarity, relevant


def slow_average_precision(similarity, relevant):
    order = sorted(range(len(similarity)), key=lambda i: -similarity[i])
    found, precisions = 0, []
    for rank, i in enumerate(order, 1):
        if relevant[i]:
            found += 1
            precisions.append(found / rank)
    return sum(precisions) / len(precisions)


def test_measures_equal_slow_loops(rankings):
    ranks = (1, 3, 5, 99)
    found = measure_queries(*rankings, ranks)
    pairs = list(zip(*rankings, strict=True))
    expected = [slow_average_precision(*pair) for pair in pairs]
    assert found['mAP'].tolist() == pytest.approx(expected)
    for k in ranks:
        assert found[f'recall@{k}'].tolist() == [
            float(any(relevant[i] for i in row.argsort(descending=True)[:k]))
            for row, relevant in pairs
        ]


def test_excluded_images_do_not_count(rankings):
    similarity, relevant = rankings
    similarity[0, 0] = -torch.inf
    found = measure_queries(similarity, relevant, ())['mAP'][0]
    rest = measure_queries(similarity[:1, 1:], relevant[:1, 1:], ())['mAP'][0]
    assert found == rest
    relevant[0, 1:] = False
    for values in measure_queries(similarity, relevant, (5,)).values():
        assert values.isnan().tolist() == [True] + [False] * 8


def test_nearest_votes_equal_a_slow_loop(rankings):
    similarity, labels = rankings[0], torch.tensor([0, 1, 2] * 4)
    for k in (1, 5, 99):  # k is limited to the gallery
        found = nearest_votes(similarity, labels, 3, k=k, temperature=0.5)
        for row, scores in zip(similarity, found, strict=True):
            votes = [0.0, 0.0, 0.0]
            for i in row.argsort(descending=True)[:k]:
                votes[labels[i]] += math.exp(row[i] / 0.5)
            expected = [vote / sum(votes) for vote in votes]
            assert scores.tolist() == pytest.approx(expected)


def evaluated(rankings, **options):
    metric = RetrievalMetric(**options)
    for scores, relevant in zip(*rankings, strict=True):
        sample = dict(pred_score=scores, gt_score=relevant.float())
        metric.process(None, [sample])
    return metric.evaluate(len(rankings[0]))


def test_metric_is_the_mean_over_matched_queries(rankings):
    similarity, relevant = rankings
    relevant[3] = False
    kept = [i for i in range(9) if i != 3]
    measured = measure_queries(similarity[kept], relevant[kept], (1, 5))
    expected = {
        f'retrieval/{name}': pytest.approx(100 * values.mean().item())
        for name, values in measured.items()
    }
    found = evaluated((similarity, relevant), topk=(1, 5))
    assert found == expected | {'retrieval/unmatched': 1}


def test_metric_refuses_unmatched_queries_and_invalid_k(rankings):
    with pytest.raises(ValueError, match='9 queries'):
        evaluated((rankings[0], torch.zeros_like(rankings[1])))
    for topk in ((), (0,), (1.5,)):
        with pytest.raises(ValueError, match='topk='):
            RetrievalMetric(topk=topk)
