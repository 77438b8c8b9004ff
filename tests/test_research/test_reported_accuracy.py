# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Reported accuracy and unknown classes, on artificial features."""

import pandas as pd
import pytest
import reported_accuracy
import torch
import trained
import unknown_classes
from test_frozen import few_of_leaf40

WHICH = 'deit-tiny-p16', 3  # weights and crops
TABLE = pd.DataFrame(
    dict(
        label=[x for x in range(6) for _ in range(20)],
        split=(['train'] * 10 + ['test'] * 10) * 6,
    )
)


@pytest.fixture
def features(monkeypatch):
    """Two datasets with features near and far from each other."""
    generator = torch.Generator().manual_seed(0)
    noise = 0.3 * torch.randn(120, 12, 5, 8, generator=generator)
    near = torch.nn.functional.one_hot(torch.tensor(TABLE.label), 8)
    found = dict(near=noise + near[:, None, None], far=noise)
    found['far'][..., 6:] += 3
    sets = dict(near=TABLE, far=TABLE)
    for module in (reported_accuracy, unknown_classes):
        monkeypatch.setattr(module, 'photographs', lambda: sets)
    monkeypatch.setattr(
        reported_accuracy.Frozen, 'views', lambda _, x: found[x][None]
    )
    unknown_classes.read.cache_clear()
    yield
    unknown_classes.read.cache_clear()


def test_reported_interval_contains_the_accuracy(features):
    (settings, *_) = reported_accuracy.GRID['defaults'].values()
    rows = [*reported_accuracy.measured('near', TABLE, 3, **settings)]
    assert len(rows) == 5
    for row in rows:
        assert 0.5 < row['low'] < row['accuracy'] <= row['high'] <= 1
        assert row['true'] > 0.9
    rows = [dict(row, default='a', set='near', count=3) for row in rows]
    rows = pd.DataFrame(rows)
    (row,) = reported_accuracy.means(
        rows.assign(inside=[100, 0, 100, 100, 100])
    )
    assert row['inside'] == 80 and row['count'] == 3


def test_unknown_classes_are_detected(features):
    rows = [*unknown_classes.measured('DeiT-Tiny', 'near', 3)]
    assert len(rows) == 5
    for row in rows:
        assert row['nearest, other sets'] == 1 == row['rejected, other sets']
        assert 0.5 < row['nearest, same set'] <= 1
        assert 0 <= row['expected'] <= row['high'] <= 1
    facts = dict(default='DeiT-Tiny', set='near', count=3)
    rows = pd.DataFrame([dict(row, **facts) for row in rows])
    found = unknown_classes.means(rows, 'DeiT-Tiny', 3)
    assert found['nearest, other sets'] == 1


@pytest.mark.slow
def test_measured_run_gives_all_accuracies(shared, monkeypatch):
    few = few_of_leaf40(shared / 'data')
    monkeypatch.setattr(trained, 'WEIGHTS', shared / 'weights')
    monkeypatch.setattr(trained, 'photographs', lambda: dict(few=few))
    monkeypatch.setattr(trained, 'train', lambda config, *_: config.load_from)
    run = 'deit-tiny-p16', 'few', 3
    (found,) = trained.measured(*run)
    accuracies = {found[x] for x in ('probe', '0.25', '1.0', 'refitted')}
    assert len(accuracies) == 1 and found['photographs'] == 6
    rows = pd.DataFrame([trained.named_run(*run, 'fit') | found])
    (row,) = trained.by_folds(rows, *WHICH)
    assert row['refitted'] == found['refitted']
