# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import pytest
import torch

from mmclca.evaluation.open_set import (
    auroc,
    energy,
    false_positive_rate,
    fit_threshold,
    max_softmax,
    threshold_by_folds,
)


@pytest.fixture
def scores():
    """Of 40 known and 30 unknown images, with ties."""
    torch.manual_seed(0)
    known = (torch.randn(40) + 1).mul(4).round()
    return known, torch.randn(30).mul(4).round()


def test_scores_by_hand():
    logits = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    total = math.exp(1) + math.exp(2) + math.exp(3)
    assert max_softmax(logits).tolist() == pytest.approx(
        [math.exp(3) / total, 1 / 3]
    )
    assert energy(logits).tolist() == pytest.approx(
        [math.log(total), math.log(3)]
    )
    halved = math.exp(0.5) + math.exp(1) + math.exp(1.5)
    assert energy(logits, 2.0)[0].item() == pytest.approx(2 * math.log(halved))


def test_auroc_and_false_positive_rate_of_sklearn(scores):
    metrics = pytest.importorskip('sklearn.metrics')
    labels = [1] * 40 + [0] * 30
    values = torch.cat(scores).tolist()
    assert auroc(*scores) == pytest.approx(
        metrics.roc_auc_score(labels, values)
    )
    false, true, _ = metrics.roc_curve(labels, values, drop_intermediate=False)
    for tpr in (0.5, 0.9, 0.95, 1.0):
        assert false_positive_rate(*scores, tpr) == pytest.approx(
            false[true >= tpr - 1e-12][0]
        )


@pytest.mark.parametrize('accept', [0.05, 0.5, 0.85, 0.9, 0.95, 1.0])
def test_threshold_accepts_the_share_and_no_more(accept):
    torch.manual_seed(0)
    known = torch.randn(20)
    threshold = fit_threshold(known, accept)
    assert (known >= threshold).sum() == round(20 * accept)


def test_ties_are_accepted_together():
    known = torch.tensor([1.0, 2.0, 2.0, 2.0])
    assert fit_threshold(known, 0.5) == 2
    assert fit_threshold(known, 0.76) == 1


def test_false_alarms_are_those_of_a_threshold_of_others():
    known = torch.arange(40.0).repeat(2, 1)
    known[0, 3] = torch.nan  # not in that repeat
    found = threshold_by_folds(known, folds=40, accept=0.9)
    # 70 of 77 others are accepted: the cut is 4, and 5 where 4 is left out
    assert found['false_alarms'] == pytest.approx(9 / 79)
    assert found['low'] < 9 / 79 < found['high'] < 0.26
    assert found['threshold'] == 4 and found['images'] == 40
    grouped = threshold_by_folds(known, [0] * 20 + [1] * 20, accept=0.9)
    assert grouped['false_alarms'] == pytest.approx(39 / 79)
    assert threshold_by_folds(known, [0] * 40) == {}


@pytest.mark.parametrize('accept', [0, -0.1, 1.01, math.nan])
def test_share_out_of_range(accept):
    with pytest.raises(ValueError, match='above 0, at most 1'):
        fit_threshold(torch.ones(3), accept)


def test_nothing_to_score_and_broken_scores():
    some, none = torch.ones(3), torch.empty(0)
    broken = torch.tensor([1.0, math.nan])
    with pytest.raises(ValueError, match='known images: found 0'):
        fit_threshold(none)
    with pytest.raises(ValueError, match='unknown images: found 0'):
        auroc(some, none)
    with pytest.raises(ValueError, match='unknown images: 1 of 2'):
        false_positive_rate(some, broken)
    with pytest.raises(ValueError, match='known images: 1 of 2'):
        auroc(broken, some)
