# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import pytest
import torch
from scipy.stats import binomtest
from sklearn import metrics

from mmclca.evaluation import (
    clopper_pearson,
    estimate_accuracy_interval,
    wilson,
)
from mmclca.evaluation.open_set import (
    auroc,
    energy,
    false_positive_rate,
    fit_threshold,
    max_softmax,
    threshold_by_folds,
)


def test_scores_equal_hand_computed_values():
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


def test_auroc_and_false_positive_rate_equal_sklearn():
    """Some of the 40 known and 30 unknown images have the same score."""
    known = (torch.randn(40) + 1).mul(4).round()
    scores = known, torch.randn(30).mul(4).round()
    labels, values = [1] * 40 + [0] * 30, torch.cat(scores).tolist()
    area = metrics.roc_auc_score(labels, values)
    assert auroc(*scores) == pytest.approx(area)
    false, true, _ = metrics.roc_curve(labels, values, drop_intermediate=False)
    for tpr in (0.5, 0.9, 0.95, 1.0):
        assert false_positive_rate(*scores, tpr) == pytest.approx(
            false[true >= tpr - 1e-12][0]
        )


def test_fit_threshold_accepts_the_share_and_ties():
    known = torch.randn(20)
    for accept in (0.05, 0.5, 0.85, 0.9, 0.95, 1.0):
        threshold = fit_threshold(known, accept)
        assert (known >= threshold).sum() == round(20 * accept)
    known = torch.tensor([1.0, 2.0, 2.0, 2.0])
    assert fit_threshold(known, 0.5) == 2
    assert fit_threshold(known, 0.76) == 1


def test_false_alarms_are_cross_validated():
    known = torch.arange(40.0).repeat(2, 1)
    known[0, 3] = torch.nan  # not tested in this repeat
    found = threshold_by_folds(known, folds=40, accept=0.9)
    # 70 of 77 other images are accepted: threshold 4, or 5 for image 4
    assert found['false_alarms'] == pytest.approx(9 / 79)
    assert found['low'] < 9 / 79 < found['high'] < 0.4
    assert found['threshold'] == 4 and found['images'] == 40
    grouped = threshold_by_folds(known, [0] * 20 + [1] * 20, accept=0.9)
    assert grouped['false_alarms'] == pytest.approx(39 / 79)
    assert threshold_by_folds(known, [0] * 40) == {}


@pytest.mark.parametrize('events', [0, 1, 7, 20])
def test_exact_interval_equals_that_of_scipy(events):
    exact = binomtest(events, 20).proportion_ci(method='exact')
    found = clopper_pearson(events / 20, 20)
    assert found == pytest.approx((exact.low, exact.high))


SOME, NONE, NAN = torch.ones(3), torch.empty(0), torch.tensor([1.0, math.nan])


@pytest.mark.parametrize(
    'function, given, term',
    [
        *((fit_threshold, [SOME, x], 'accept=') for x in (0, 1.01, math.nan)),
        (fit_threshold, [NONE], '^known images: found 0'),
        (auroc, [SOME, NONE], 'unknown images: found 0'),
        (false_positive_rate, [SOME, NAN], 'unknown images: 1 of 2'),
        (auroc, [NAN, SOME], 'of known images: 1 of 2'),
    ],
)
def test_scores_and_shares_are_refused(function, given, term):
    with pytest.raises(ValueError, match=term):
        function(*given)


def test_wilson_equals_scipy():
    for right in (0, 3, 12):
        expected = binomtest(right, 12).proportion_ci(0.9, 'wilson')
        assert wilson(right / 12, 12, 0.9) == pytest.approx(tuple(expected))
    assert wilson(float('nan'), 0) == (0, 1)  # without images


def test_cross_validated_images_count_half_in_the_interval():
    low, high = estimate_accuracy_interval(0.75, 40)
    assert (low, high) == wilson(0.75, 20)
    assert low < wilson(0.75, 40)[0] < 0.75 < wilson(0.75, 40)[1] < high
