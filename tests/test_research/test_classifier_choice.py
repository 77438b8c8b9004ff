# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Rules for the weights of feature subsets, chosen without a dataset."""

import classifier_choice
import pandas as pd
import pytest
import torch
import torch.nn.functional as F

from mmclca.apis.probe import FoldSettings, LabeledFeatures, out_of_fold
from mmclca.apis.probe.settings import PRIOR_DEVIATION

RULES = [('x', 0.3, 0.3, 'accuracy', 0.0), ('x', 0.3, 0.3, 'fixed', 0.0)]


@pytest.fixture
def three_datasets(monkeypatch):
    """Accuracies with two rules, and with the best classifiers by users."""
    monkeypatch.setattr(classifier_choice, 'NAMES', ('a', 'b', 'c'))
    accuracies = dict(
        deit_tiny=([60, 60, 60], [50, 50, 90]),
        vit_tiny=([60, 60, 60], [57, 57, 70]),
    )
    rows = [
        dict(network=network, **dict(zip('abc', values, strict=True)))
        | dict(zip(classifier_choice.COLUMNS, rule, strict=True))
        for network, both in accuracies.items()
        for rule, values in zip(RULES, both, strict=True)
    ]
    best = dict(
        deit_tiny=dict(a=50, b=50, c=60), vit_tiny=dict(a=60, b=60, c=65)
    )
    return pd.DataFrame(rows), best


def test_a_rule_is_chosen_on_the_other_datasets_below_a_loss(three_datasets):
    rows, best = three_datasets
    chosen = classifier_choice.choose_without(rows, best)
    # the first rule loses 5 points on c, the second is worse on a and b
    assert [x['rule'] for x in chosen] == [RULES[1], RULES[1], RULES[0]]
    assert [x['ours']['vit_tiny'] for x in chosen] == [57, 57, 60]


def test_summary_names_the_dataset_of_the_largest_loss(three_datasets):
    summary = classifier_choice.summarize(*three_datasets)
    vit = summary[RULES[0]]['vit_tiny']
    assert (vit['mean'], vit['loss'], vit['worst']) == (60, 5, 'c')
    assert summary[RULES[1]]['deit_tiny']['loss'] == 0


def test_weights_sum_to_one_and_begin_with_the_first_subset():
    for number, length in ((2, 11), (3, 21)):
        weights = classifier_choice.list_weights(number)
        assert weights.shape == (length, number)
        assert torch.allclose(weights.sum(1), torch.ones(length).double())
        assert weights[0].tolist() == [1] + [0] * (number - 1)


def test_a_gain_of_one_photo_is_not_clear():
    right = torch.zeros(3, 60, dtype=torch.bool)
    right[1, :1] = right[2, :20] = True
    assert classifier_choice.find_clear_gain(right[:2], 60) == 0
    assert classifier_choice.find_clear_gain(right, 60) == 2


def test_the_rule_of_fit_selects_its_weight():
    labels = torch.arange(24) % 4
    features = torch.randn(24, 90)
    features[:, 80:84] += 2 * F.one_hot(labels, 4)
    columns = torch.arange(80), torch.arange(80, 90)
    readings = dict.fromkeys(
        (classifier_choice.NINE, classifier_choice.POOLED), columns[0]
    )
    readings[classifier_choice.FIRST] = columns[0]
    readings[classifier_choice.LATE] = columns[1]
    data = LabeledFeatures(features, labels, 4)
    rules = dict(
        classifier_choice.score_rules(data, readings, features, labels)
    )
    assert classifier_choice.PRESENT[-1] == PRIOR_DEVIATION
    subsets = LabeledFeatures(features, labels, 4, feature_subsets=columns)
    folds = FoldSettings(classifier_choice.FOLDS, classifier_choice.REPEATS)
    weight = out_of_fold(subsets, folds=folds).setting.late_cls_weight
    assert weight > 0.5
    # all photos are tested, so the selected mixture is nearly always right
    assert rules[classifier_choice.PRESENT] > 90
