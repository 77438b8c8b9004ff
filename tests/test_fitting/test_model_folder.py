# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json
from dataclasses import replace

import pytest
from report_folder import facts, write_folder

from mmclca.fitting.fit_folder import FitFolder
from mmclca.fitting.options import FitOptions
from mmclca.fitting.record import FitCall, FitRecord
from mmclca.fitting.record_parts import Photos
from mmclca.fitting.report import write_report

RECORD = FitRecord(
    FitCall('photos', FitOptions()), Photos('a', counts=dict(ash=3))
)


@pytest.fixture
def folder(tmp_path):
    folder = FitFolder(tmp_path / 'model')
    folder.write(RECORD)
    return folder


def test_find_record_returns_the_record_of_an_equal_call(folder):
    assert folder.find_record(replace(RECORD, photos=Photos('a'))) == RECORD


@pytest.mark.parametrize(
    'other, difference',
    [
        (
            dict(call=FitCall('photos', FitOptions(budget='9ms'))),
            "None .*'9ms'",
        ),
        (dict(photos=Photos('b', counts=dict(ash=4))), '3 .*4'),
    ],
)
def test_find_record_refuses_another_call(folder, other, difference):
    with pytest.raises(ValueError, match=difference):
        folder.find_record(replace(RECORD, **other))


def test_find_record_refuses_a_folder_with_other_files(tmp_path):
    folder = FitFolder(tmp_path)
    assert folder.find_record(RECORD) is None
    (tmp_path / 'features').mkdir()
    assert folder.find_record(RECORD) is None
    for file in (tmp_path / 'training/oak/a.jpg', folder.log):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    with pytest.raises(ValueError, match='not empty'):
        folder.find_record(RECORD)
    with pytest.raises(ValueError, match='is a file'):
        FitFolder(folder.log).find_record(RECORD)
    folder.clear()
    assert folder.log.exists()
    assert (tmp_path / 'training/oak/a.jpg').exists()


def test_find_record_discards_a_draft_without_an_equal_call(folder):
    draft = folder.draft
    for record in (None, replace(RECORD, photos=Photos('b'))):
        draft.path.mkdir()
        draft.model.touch()
        if record:
            draft.write(record)
        assert folder.find_record(RECORD) == RECORD
        assert not draft.path.exists()


def test_clear_keeps_features_model_and_user_files(folder):
    (folder.path / 'features').mkdir()
    (folder.path / 'thesis.tex').touch()
    folder.model.touch()
    photo = folder.training_folder / 'ash/a.jpg'
    for path in (photo, folder.hold_out / 'epoch_1.pth'):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    folder.clear()
    left = {path.name for path in folder.path.iterdir()}
    expected = {'features', 'thesis.tex', 'model.pth', 'fit.json', 'training'}
    assert left == expected
    assert photo.exists() and not folder.hold_out.exists()
    photo.unlink()
    photo.parent.rmdir()
    folder.remove_training()
    assert not folder.training_folder.exists()


def test_read_names_fit_json_if_it_is_missing(tmp_path):
    (tmp_path / 'model.pth').touch()
    for read in (FitFolder(tmp_path).read, lambda: write_report(tmp_path)):
        with pytest.raises(FileNotFoundError, match='fit.json'):
            read()


@pytest.mark.parametrize('text', ['{', '3', '{"colour": 1}', '[' * 100_000])
def test_read_refuses_a_damaged_fit_json(folder, text):
    folder.file.write_text(text)
    with pytest.raises(ValueError, match='damaged'):
        folder.read()


@pytest.fixture(scope='module')
def written(tmp_path_factory):
    """Complete folder, whose facts and table are replaced by tests."""
    return write_folder(tmp_path_factory.mktemp('model'))


DAMAGES = [
    dict(counts=dict(ash='3')),
    dict(counts={}),
    dict(probe=dict(accuracy='all')),
    dict(probe=None),
    dict(learning_curve=[1, 2]),
    dict(learning_curve=[dict(photos=0, accuracy=1, low=0, high=1)]),
    dict(model=[]),
    dict(model=dict(facts()['model'], keep_rate=True)),
    dict(threshold='high'),
    dict(call=dict(folds='five')),
    dict(call=[]),
    dict(cost=dict(gmacs=0, gmacs_full=1, params=1)),
    dict(cost=dict(gmacs=float('nan'), gmacs_full=1, params=1)),
    dict(problems=[dict(kind='unreadable', cases=['a'])]),
    dict(near_duplicates=[['a', 'b', 'c']]),
    dict(final='best'),
    dict(date=3),
]


@pytest.mark.parametrize('change', DAMAGES, ids=str)
def test_report_names_fit_json_if_a_fact_has_a_wrong_type(written, change):
    known = dict(facts(), learning_curve=[]) | change
    (written / 'fit.json').write_text(json.dumps(known))
    with pytest.raises(ValueError, match='fit.json is damaged'):
        write_report(written)


@pytest.mark.parametrize('content', [b'', b'path,class\n', b'\0' * 99])
def test_table_is_refused_if_it_lists_no_photos(tmp_path, content):
    (tmp_path / 'photographs.csv').write_bytes(content)
    with pytest.raises(ValueError, match='photographs.csv is damaged'):
        FitFolder(tmp_path).read_used_photos()
