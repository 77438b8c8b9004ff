# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Ctrl-C while features are computed keeps them, and leaves no model."""

from itertools import count

import pytest

from mmclca.apis.probe import view_features
from mmclca.fitting import FittedModel

OPTIONS = ['--budget', '0.02GMACs', '--runtime', 'pytorch', '--probe-only']


@pytest.fixture
def calls(monkeypatch):
    """Batches that were computed; Ctrl-C at the third one."""
    calls, numbers = [], count(1)
    compute = view_features.feature_batches

    def compute_or_stop(inferencer, paths, *arguments, **options):
        if next(numbers) == 3:
            raise KeyboardInterrupt
        calls.append(paths)
        return compute(inferencer, paths, *arguments, **options)

    monkeypatch.setattr(view_features, 'feature_batches', compute_or_stop)
    return calls


@pytest.fixture
def stop(run, place, tmp_path, capsys):
    """Run ``fit`` until Ctrl-C; return its last line."""

    def stop(*words):
        words = (*OPTIONS, '--weights', place / 'tiny.safetensors', *words)
        code = run('fit', place / 'photographs', '--out', tmp_path, *words)
        assert code == 130
        return capsys.readouterr().err.splitlines()[-1]

    return stop


@pytest.mark.slow
def test_fit_keeps_features_if_it_is_interrupted(
    stop, calls, fit, noted, place, tmp_path, capsys
):
    last = stop()
    # two of three views of all photos
    assert last.startswith(
        f'Stopped. 67% of the features are saved in {tmp_path}'
    )
    assert last.endswith('Run the same command to resume.')
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {'.draft', 'features', 'log.txt'}
    with pytest.raises(FileNotFoundError):
        FittedModel(tmp_path)
    calls.clear()
    fit(place, tmp_path)
    assert 'Features   67% were saved' in capsys.readouterr().out
    # the third view, and test photos
    assert [*map(len, calls)] == [16, 8]
    for name in ('model.pth', 'photographs.csv', 'threshold.json'):
        expected = (place / 'model' / name).read_bytes()
        assert (tmp_path / name).read_bytes() == expected


@pytest.mark.slow
def test_fit_with_other_options_reuses_saved_features(
    stop, calls, fit, place, tmp_path, capsys
):
    stop('--folds', '3')
    calls.clear()
    fit(place, tmp_path, folds=4)
    assert 'Features   67% were saved' in capsys.readouterr().out
    assert [*map(len, calls)] == [16, 8]


def test_interrupted_fit_keeps_the_previous_model(
    stop, calls, copy, place, tmp_path
):
    before = (copy.folder / 'model.pth').read_bytes()
    for folder in copy.folder.glob('features/*'):
        for part in folder.iterdir():
            part.unlink()
    stop('--out', copy.folder, '--folds', '3', '--overwrite')
    assert (copy.folder / 'model.pth').read_bytes() == before
    assert FittedModel(copy.folder).predict(place / 'larch/0.png')
