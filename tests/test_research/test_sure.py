# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Coverage of prediction sets, on random features."""

from dataclasses import replace

import pandas as pd
import pytest
import sure
import torch


@pytest.fixture
def data(monkeypatch):
    """Photos from six overlapping classes."""
    monkeypatch.setattr(sure, 'COUNTS', (2, 5, 30))
    monkeypatch.setattr(sure, 'NUM_DRAWS', 3)
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(6).repeat_interleave(20)
    centers = torch.nn.functional.one_hot(labels, 16)
    noise = torch.randn(len(labels), 16, generator=generator)
    return sure.Photos(centers + 0.4 * noise, labels)


def test_sets_are_measured_where_there_are_enough_photos(data):
    table = pd.DataFrame(sure.measure(data))
    # 12 photos are too few, and with 30 of 20 none remain
    assert {*table['count']} == {5}
    assert [*table.rule] == ['predict', 'CV+', 'split'] * 3
    rules = table.set_index(['rule', 'number'])
    own, split = rules.loc['predict'], rules.loc['split']
    assert (own.covered > 0.8).all()
    assert split.covered.tolist() == pytest.approx(own.covered.tolist())
    assert (rules.loc['CV+'].covered >= own.covered - 0.1).all()
    assert ((table['size'] >= 1) & (table['size'] <= 6)).all()
    assert ((table.one >= 0) & (table.one <= 1)).all()


def test_restricted_predictions_are_compared_with_a_refit(data):
    rows = [*sure.measure_among(data)]
    assert len(rows) == 3
    for row in rows:
        # only classes that can occur are confused
        assert row['among'] >= row['everything']
        assert abs(row['among'] - row['refit']) < 0.3
        assert pd.isna(row['covered'])  # 15 photos are too few


def test_sets_by_group_cover_photos_of_new_groups(data):
    # two photos per group, of one class
    groups = torch.arange(len(data.labels)).div(2, rounding_mode='floor')
    grouped = replace(data, groups=groups.numpy())
    rows = [*sure.measure_groups(grouped)]
    assert len(rows) == 3
    for row in rows:
        assert 0.5 < row['groups by group'] <= 1
        assert row['size by group'] >= row['size by photo'] - 1
