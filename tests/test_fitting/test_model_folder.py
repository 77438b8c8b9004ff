# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json
from dataclasses import replace

import pytest
from report_folder import facts, write_folder

from mmclca.fitting.record import FitFolder, FitRecord
from mmclca.fitting.report import write_report

CALL = dict(folds=5, budget=None, runtime=None)
RECORD = FitRecord(call=CALL, photos='a', counts=dict(ash=3))


@pytest.fixture
def folder(tmp_path):
    folder = FitFolder(tmp_path / 'model')
    folder.write(RECORD)
    return folder


def test_known_returns_the_record_of_an_equal_call(folder):
    assert folder.known(replace(RECORD, counts={})) == RECORD


@pytest.mark.parametrize(
    'other, difference',
    [
        (dict(call=dict(CALL, budget='9ms')), "None .*'9ms'"),
        (dict(photos='b', counts=dict(ash=4)), '3 .*4'),
    ],
)
def test_known_refuses_another_call(folder, other, difference):
    with pytest.raises(ValueError, match=difference):
        folder.known(replace(RECORD, **other))


def test_known_refuses_a_folder_with_other_files(tmp_path):
    folder = FitFolder(tmp_path)
    assert folder.known(RECORD) is None
    (tmp_path / 'features').mkdir()
    assert folder.known(RECORD) is None
    for file in (tmp_path / 'training/oak/a.jpg', folder.log):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    with pytest.raises(ValueError, match='not empty'):
        folder.known(RECORD)
    with pytest.raises(ValueError, match='is a file'):
        FitFolder(folder.log).known(RECORD)
    folder.clear()
    assert folder.log.exists()
    assert (tmp_path / 'training/oak/a.jpg').exists()


def test_known_discards_a_draft_without_an_equal_call(folder):
    draft = folder.draft
    for record in (None, replace(RECORD, photos='b')):
        draft.path.mkdir()
        draft.model.touch()
        if record:
            draft.write(record)
        assert folder.known(RECORD) == RECORD
        assert not draft.path.exists()


def test_clear_keeps_features_model_and_user_files(folder):
    (folder.path / 'features').mkdir()
    (folder.path / 'thesis.tex').touch()
    folder.model.touch()
    photo = folder.training / 'ash/a.jpg'
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
    assert not folder.training.exists()


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
    dict(learning_curve=[1, 2]),
    dict(model=[]),
    dict(threshold='high'),
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
