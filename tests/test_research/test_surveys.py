# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Simulated surveys of random probabilities."""

import numpy as np
import pandas as pd
import pytest
import surveys
import torch
from surveys import Pool


def make_pool(number=160, classes=4):
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.full(classes, 0.4), number)
    labels = [rng.choice(classes, p=row) for row in probabilities]
    confusions = 5 * np.eye(classes, dtype=int)
    return Pool('leaves', probabilities, np.array(labels), confusions)


def test_intervals_hold_and_are_narrower_than_without_the_model(monkeypatch):
    monkeypatch.setattr(surveys, 'LABELS', (30,))
    pools = {'same session': [make_pool()]}
    rows = pd.DataFrame(surveys.survey_kinds(pools, 20))
    summary = surveys.summarize(rows, ['kind', 'labels'])
    (row,) = summary.to_dict('records')
    assert row['accuracy'] >= 85 and row['counts'] >= 85
    assert row['plain_accuracy'] >= 80 and row['plain_counts'] >= 85
    assert 0 < row['counts_width'] < 1 and 0 < row['accuracy_width'] < 1.1


def test_folder_has_other_class_shares_if_requested():
    pool, rng = make_pool(), np.random.default_rng(0)
    shares = []
    for kind in ('same session', 'changed class shares'):
        folders = [surveys.draw_folder(pool, kind, rng) for _ in range(30)]
        assert all(len({*x}) == len(x) >= 100 for x in folders)
        shares.append([(pool.labels[x] == 0).mean() for x in folders])
    assert np.std(shares[1]) > 2 * np.std(shares[0])


def test_dropped_classes_have_one_label():
    new = surveys.drop_classes(torch.arange(8), seed=0)
    assert sorted(new.tolist()) == [0, 1, 2, 3, 4, 5, 6, 6]


def test_pool_has_no_training_photos():
    class Fitted:
        def fit(self, features, labels, classes):
            scores = torch.nn.functional.one_hot(labels, len(classes))
            self.probabilities = lambda: scores.float()
            return self

        def scores(self, features):
            return features

    features, labels = torch.randn(6, 2), torch.tensor([0, 0, 0, 1, 1, 1])
    others = torch.tensor([False, True, True, False, True, True])
    train = torch.tensor([0, 3])
    pool = surveys.classify(
        Fitted(), 'leaves', features, labels, train, others
    )
    assert pool.labels.tolist() == [0, 0, 1, 1]
    assert pool.confusions.tolist() == [[1, 0], [0, 1]]
    assert pool.probabilities.sum(1) == pytest.approx(1)
