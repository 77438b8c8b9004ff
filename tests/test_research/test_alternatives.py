# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Comparison of fit with other libraries."""

import json
import sys

import alternatives
import alternatives_foreign
import pandas as pd
import pytest


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """Four training photos and one test photo in each of two classes."""
    rows = []
    for label, name in enumerate('ab'):
        for i in range(5):
            path = tmp_path / name / f'{i}.jpg'
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b'photo')
            split = 'train' if i < 4 else 'test'
            rows.append(dict(path=str(path), label=label, split=split))
    table = pd.DataFrame(rows)
    monkeypatch.setattr(alternatives, 'read_dataset', lambda _: table)
    return table


def test_three_training_photos_and_all_test_photos_are_copied(
    dataset, tmp_path
):
    photos = alternatives.copy_photos('two', tmp_path / 'copy')
    train = alternatives_foreign.list_photos(photos.train)
    test = alternatives_foreign.list_photos(photos.test)
    assert train[1] == [*'aaabbb'] and test[1] == [*'ab']
    assert not photos.out.exists()


def test_a_missing_library_is_named_in_one_line(capsys, monkeypatch):
    monkeypatch.setattr(alternatives, 'PYTHON', sys.executable)
    packages = {'unknown': (('no-such-package',), '')}
    monkeypatch.setattr(alternatives, 'LIBRARIES', packages)
    assert alternatives.measure('unknown', 'two') == []
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith('unknown:') and 'no-such-package' in line


def test_a_row_has_accuracy_size_and_versions(dataset, monkeypatch):
    def run(library, photos):
        photos.out.mkdir()
        (photos.out / 'model').write_bytes(bytes(2_500_000))
        return 75.0

    monkeypatch.setattr(alternatives, 'run_foreign', run)
    monkeypatch.setattr(alternatives, 'PYTHON', sys.executable)
    (row,) = alternatives.measure('scikit-learn', 'two')
    assert row['accuracy'] == 75 and row['megabytes'] == 2.5
    assert row['cpu_seconds'] >= 0
    assert row['versions'].startswith('scikit-learn ')


def test_comparison_leaves_out_datasets_that_lack_a_library():
    accuracies = dict(
        one={'fit': 70, 'fastai': 64},
        two={'fit': 60, 'fastai': 62},
        three={'fit': 50},
    )
    rows = [
        dict(library=x, set=name, accuracy=y, cpu_seconds=y, megabytes=1)
        for name, accuracy in accuracies.items()
        for x, y in accuracy.items()
    ]
    table = pd.DataFrame(rows).assign(versions='0')
    comparison = alternatives.Comparison(table)
    assert comparison.libraries == ['fit', 'fastai']
    assert [*comparison.accuracies.index] == ['one', 'two']
    summary = comparison.summarize('fastai')
    assert summary['better'] == dict(two=2)
    assert summary['accuracy'] == summary['cpu_seconds'] == 63
    assert summary['gain'] == -2 and summary['half_width'] > 4


def test_a_failed_command_ends_with_its_message():
    program = 'import sys; sys.exit("no photos")'
    with pytest.raises(SystemExit, match='no photos'):
        alternatives.call([sys.executable, '-c', program])


def test_foreign_program_prints_the_accuracy(
    dataset, tmp_path, monkeypatch, capsys
):
    photos = alternatives.copy_photos('two', tmp_path / 'copy')
    libraries = dict(constant=lambda *_: ['a', 'a'])
    monkeypatch.setattr(alternatives_foreign, 'LIBRARIES', libraries)
    monkeypatch.setattr(
        alternatives_foreign, 'use_local_weights', lambda _: None
    )
    words = 'constant', photos.train, photos.test, photos.out, 'weights'
    monkeypatch.setattr(sys, 'argv', ['program', *map(str, words)])
    alternatives_foreign.main()
    assert json.loads(capsys.readouterr().out) == dict(accuracy=50)
