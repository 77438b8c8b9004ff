# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from dataclasses import replace

import pytest
from report_folder import write_folder

from mmclca.fitting.record import FitRecord, ModelFolder
from mmclca.fitting.report import write_report

CALL = dict(folds=5, budget=None, runtime=None)
RECORD = FitRecord(call=CALL, photographs='a', counts=dict(ash=3))


@pytest.fixture
def folder(tmp_path):
    folder = ModelFolder(tmp_path / 'model')
    folder.write(RECORD)
    return folder


def test_the_same_call_goes_on(folder):
    assert folder.known(replace(RECORD, counts={})) == RECORD


@pytest.mark.parametrize(
    'other, said',
    [
        (dict(call=dict(CALL, budget='9ms')), "budget None .now '9ms'"),
        (dict(photographs='b', counts=dict(ash=4)), '3 photos .now 4'),
    ],
)
def test_another_call_is_refused(folder, other, said):
    with pytest.raises(ValueError, match=f'{said}.*--overwrite'):
        folder.known(replace(RECORD, **other))


def test_a_folder_of_an_earlier_version(folder):
    folder.write(replace(RECORD, call=dict(folds=5, budget=None)))
    assert folder.known(RECORD) == RECORD


def test_a_folder_of_something_else_is_refused(tmp_path):
    folder = ModelFolder(tmp_path)
    assert folder.known(RECORD) is None
    (tmp_path / 'features').mkdir()
    assert folder.known(RECORD) is None
    (tmp_path / 'thesis.tex').touch()
    with pytest.raises(ValueError, match='not empty'):
        folder.known(RECORD)
    with pytest.raises(ValueError, match='is a file'):
        ModelFolder(tmp_path / 'thesis.tex').known(RECORD)


def test_photographs_and_a_log_of_another_are_neither_taken_nor_removed(
    tmp_path,
):
    folder, leaf = ModelFolder(tmp_path), tmp_path / 'training/oak/a.jpg'
    leaf.parent.mkdir(parents=True)
    for file in (leaf, folder.log):
        file.touch()
    with pytest.raises(ValueError, match='not empty'):
        folder.known(RECORD)
    folder.clear()
    assert leaf.exists() and folder.log.exists()


def test_features_and_the_model_outlive_the_rest(folder):
    for name in ('features', 'training'):
        (folder.path / name).mkdir()
    (folder.path / 'thesis.tex').touch()
    folder.model.touch()
    folder.clear()
    left = {path.name for path in folder.path.iterdir()}
    assert left == {'features', 'thesis.tex', 'model.pth', 'fit.json'}


def test_no_model(tmp_path):
    (tmp_path / 'model.pth').touch()
    with pytest.raises(FileNotFoundError, match='fit.json'):
        ModelFolder(tmp_path).read()


def test_a_draft_that_is_of_no_use_is_discarded(folder):
    draft = folder.draft
    for record in (None, replace(RECORD, photographs='b')):
        draft.path.mkdir()
        draft.model.touch()
        if record:
            draft.write(record)
        assert folder.known(RECORD) == RECORD
        assert not draft.path.exists()


@pytest.mark.parametrize('text', ['{', '3', '{"color": 1}', '[' * 100_000])
def test_a_record_that_is_damaged(folder, text):
    folder.file.write_text(text)
    with pytest.raises(ValueError, match='is damaged .*--overwrite'):
        folder.read()


def test_files_of_others_stay_if_trainings_are_removed(folder):
    photo = folder.training / 'ash/a.jpg'
    for path in (photo, folder.hold_out / 'epoch_1.pth'):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    folder.clear()
    assert photo.exists() and not folder.hold_out.exists()
    photo.unlink()
    photo.parent.rmdir()
    folder.remove_training()
    assert not folder.training.exists()


DAMAGES = [
    dict(counts=dict(ash='3')),
    dict(counts={}),
    dict(probe=None),
    dict(probe=dict(accuracy='all')),
    dict(learning_curve=[1, 2]),
    dict(cost=3),
    dict(model=[]),
    dict(threshold='high'),
]


@pytest.mark.parametrize('change', DAMAGES, ids=str)
def test_report_names_fit_json_if_a_fact_has_a_wrong_type(tmp_path, change):
    write_folder(tmp_path, **change)
    with pytest.raises(ValueError, match='fit.json is damaged'):
        write_report(tmp_path)


@pytest.mark.parametrize('content', [b'', b'path,class\n', b'\0' * 99])
def test_table_is_refused_if_it_lists_no_photos(tmp_path, content):
    write_folder(tmp_path)
    (tmp_path / 'photographs.csv').write_bytes(content)
    with pytest.raises(ValueError, match='photographs.csv is damaged'):
        ModelFolder(tmp_path).used_rows()
