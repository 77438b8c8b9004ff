# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Savings in the cross-validation of many photos."""

import many_photos
import pytest
import torch

from mmclca.apis.probe import LabeledFeatures, folds


@pytest.fixture(scope='module')
def rows():
    features, labels = torch.randn(60, 90), torch.arange(60) % 3
    features[:, :3] += 3 * torch.eye(3)[labels]
    data = LabeledFeatures(features, labels, 3)
    return {
        name: many_photos.measure(data, name) for name in many_photos.VARIANTS
    }


def test_savings_change_little(rows):
    exact, *others = rows.values()
    for row in others:
        assert abs(row['accuracy'] - exact['accuracy']) < 8
    single = rows['float32 (above 5,000 rows)']
    assert single['temperature'] == pytest.approx(
        exact['temperature'], rel=1e-4
    )


def test_measure_restores_the_thresholds(rows):
    assert folds.MAX_REPEATED == 2000 and folds.MAX_NESTED == 10000
