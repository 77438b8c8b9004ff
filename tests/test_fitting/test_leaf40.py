# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fits on real leaves and synthetic cultivars, with few photos per class."""

import numpy as np
import pytest
from tiny_run import ROOT, run_tool

import mmclca
from mmclca.fitting import fine_tuning

pytestmark = pytest.mark.slow


@pytest.fixture
def leaves(shared, tmp_path):
    """Link training photos of every fourth class; return test photos."""
    root = shared / 'data' / 'leaf40_white'
    classes = (root / 'classes.txt').read_text().splitlines()

    def listed(name):
        lines = (root / name).read_text().splitlines()
        pairs = (line.rsplit(' ', 1) for line in lines)
        found = [(path, int(label)) for path, label in pairs]
        return [(root / x, classes[i]) for x, i in found if not i % 4]

    for path, name in listed('train_3shot.txt'):
        folder = tmp_path / 'photographs' / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / path.name).symlink_to(path)
    return listed('test.txt')


def accuracy(model, leaves):
    """Accuracy on test photos."""
    found = model.predict([str(path) for path, _ in leaves])
    pairs = zip(found, leaves, strict=True)
    return sum(r['pred_class'] == name for r, (_, name) in pairs) / len(found)


def test_accuracy_on_test_photos_is_within_the_interval(
    shared, leaves, tmp_path, capsys
):
    model = mmclca.fit(
        tmp_path / 'photographs',
        tmp_path / 'model',
        weights=shared / 'weights' / 'deit_tiny_patch16_224.pth',
        probe_only=True,
    )
    assert model.accuracy > 0.9
    assert model.facts['probe']['low'] - 0.1 < accuracy(model, leaves) < 1
    assert 'Result ' in capsys.readouterr().out
    assert (model.folder / 'report.html').stat().st_size > 1e5


def test_fine_tuning_improves_accuracy(shared, tmp_path, monkeypatch):
    """On synthetic cultivars, since it does not help on leaf40."""
    tool = ROOT / 'tools/dataset_converters/synthetic_leaves.py'
    words = '--classes 8 --per-class 20 --difference 0.4 --size 160 --seed 3'
    run_tool(monkeypatch, tool, tmp_path, *words.split())
    leaves = []
    for folder in (tmp_path / 'images').iterdir():
        known, new = np.split(sorted(folder.iterdir()), [12])
        leaves += [(path, folder.name) for path in new]
        (tmp_path / 'photographs' / folder.name).mkdir(parents=True)
        for path in known:
            path.rename(tmp_path / 'photographs' / folder.name / path.name)
    weights = shared / 'weights' / 'deit_tiny_patch16_224.pth'
    place = tmp_path / 'photographs', tmp_path / 'model'
    options = dict(weights=weights, budget='0.3GMACs')
    monkeypatch.setattr(fine_tuning, 'MIN_PHOTOS', 96)
    before = accuracy(mmclca.fit(*place, probe_only=True, **options), leaves)
    model = mmclca.fit(*place, **options)  # resumes
    assert model.facts['final'] == 'trained'
    assert accuracy(model, leaves) > before
