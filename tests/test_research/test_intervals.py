# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Intervals and unknown classes, on artificial features."""

from types import SimpleNamespace

import intervals
import pandas as pd
import pytest
import torch
import trained
import unknown_classes
from test_frozen import few_of_leaf40

from mmclca.apis.probe import LabeledFeatures
from mmclca.apis.probe.folds import fit_chosen

WHICH = 'deit-tiny-p16', 3  # weights and crops
TABLE = pd.DataFrame(
    dict(
        path=[f'{x % 8}/{x}' for x in range(120)],
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
    monkeypatch.setattr(unknown_classes, 'photos', lambda: sets)
    monkeypatch.setattr(
        unknown_classes.Frozen, 'views', lambda _, x: found[x][None]
    )
    unknown_classes.read.cache_clear()
    yield
    unknown_classes.read.cache_clear()


@pytest.fixture
def probe(monkeypatch):
    """A probe on easy features, for photos without near-duplicates."""
    one_hot = torch.nn.functional.one_hot(torch.tensor(TABLE.label))
    read = one_hot + 0.3 * torch.randn(120, 6)

    def fit(features, labels, classes, groups):
        data = LabeledFeatures(features, labels, len(classes), groups)
        found, fitted = fit_chosen(data)
        probe.scores = lambda x: fitted.scores(x) / found.temperature
        return found

    probe = SimpleNamespace(fit=fit, features=lambda paths: (read, {}))
    monkeypatch.setattr(
        intervals.fit_networks, 'build_probe', lambda *_: probe
    )
    monkeypatch.setattr(intervals, 'find_near_duplicates', lambda *_: [])
    return probe


def test_interval_contains_the_accuracy_on_test_photos(probe, monkeypatch):
    monkeypatch.setattr(intervals, 'photos', lambda: dict(easy=TABLE))
    (row,) = intervals.measure(('', ''), 'easy', intervals.SAME, 3)
    assert row['inside'] >= 90 and 60 < row['accuracy'] < row['test']
    assert 5 < row['width'] < 60
    assert row['calibrated'] < row['uncalibrated']


def test_pairs_separate_photos_and_observers(monkeypatch):
    observers = TABLE.path.str[0]
    monkeypatch.setattr(intervals, 'observers', lambda *_: observers)
    for shift in intervals.SHIFTS:
        drawn, tested, groups = intervals.pair('', TABLE, shift, 3, 0)
        assert len(drawn) == 18 and not tested[drawn].any()
        if shift == intervals.OTHERS:
            assert not {*groups} & {*observers[tested.numpy()]}
        if shift == intervals.LATER:
            assert set(TABLE.split[tested.numpy()]) == {'test'}


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
    monkeypatch.setattr(trained, 'photos', lambda: dict(few=few))
    monkeypatch.setattr(trained, 'train', lambda config, *_: config.load_from)
    run = 'deit-tiny-p16', 'few', 3
    (found,) = trained.measured(*run)
    accuracies = {found[x] for x in ('probe', '0.25', '1.0', 'refitted')}
    assert len(accuracies) == 1 and found['photos'] == 6
    rows = pd.DataFrame([trained.named_run(*run, 'fit') | found])
    (row,) = trained.by_folds(rows, *WHICH)
    assert row['refitted'] == found['refitted']
