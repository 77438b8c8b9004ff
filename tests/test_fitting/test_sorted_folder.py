# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy of a model on sorted photos, next to the promised one."""

import csv
import json
import shutil

import pytest
import report_folder
from PIL import Image
from tiny_photos import write_photos

import mmclca
from mmclca.fitting.record import FitRecord
from mmclca.fitting.sorted_folder import (
    ClassifiedPhoto,
    FolderTest,
    SortedPhotos,
    is_sorted,
    sort_photos,
)
from mmclca.fitting.sorted_folder_text import folder_test_lines

ASH, ELM, OAK, FIR = report_folder.CLASSES
NONE_SKIPPED = SortedPhotos('', [], [], {}, 0, [])


def make_photo(label, prediction, in_training=False, known=True):
    result = dict(
        image='a.jpg',
        pred_class=prediction,
        pred_score=0.9,
        known=known,
        known_score=0.95,
    )
    return ClassifiedPhoto(label, in_training, result)


def make_test(*photos):
    record = FitRecord.from_json(
        report_folder.facts() | dict(call=dict(photos=None))
    )
    return FolderTest(record, NONE_SKIPPED, [*photos])


def test_accuracy_recalls_and_confusions_are_counted():
    wrong = make_photo(ELM, OAK, known=False)
    test = make_test(make_photo(ASH, ASH), make_photo(ELM, ELM), wrong, wrong)
    assert (test.measurement.n, test.measurement.accuracy) == (4, 0.5)
    assert [*test.per_class] == [ELM, ASH]
    (confusion,) = test.confusions
    assert (confusion.label, confusion.prediction) == (ELM, OAK)
    assert (confusion.errors, confusion.photos) == (2, 3)
    lines = '\n'.join(folder_test_lines(test))
    assert '50.0% accuracy' in lines and '72.7% accuracy' in lines
    assert '2 of 4 photos flagged' in lines and '6.1% promised' in lines


def test_training_photos_are_left_out_unless_all_are():
    test = make_test(make_photo(ASH, ASH, True), make_photo(ELM, OAK))
    assert test.measurement.accuracy == 0
    assert 'not counted' in '\n'.join(folder_test_lines(test))
    test = make_test(make_photo(ASH, ASH, True))
    assert test.measurement.accuracy == 1
    assert 'nothing about new' in '\n'.join(folder_test_lines(test))


def test_unreadable_photos_are_listed_and_not_counted():
    broken = ClassifiedPhoto(
        ASH, False, dict(image='b.jpg', error='empty file')
    )
    test = make_test(broken, make_photo(ELM, ELM))
    assert test.measurement.n == 1
    assert 'b.jpg: empty file' in '\n'.join(folder_test_lines(test))


def write(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new('RGB', (8, 8)).save(path)
    return folder


def test_other_folders_and_empty_ones_are_left_out(tmp_path):
    write(tmp_path, 'ash/1.png', 'ash/sun/2.png', 'fir/3.png', '4.png')
    (tmp_path / 'elm').mkdir()
    photos = sort_photos(tmp_path, ['ash', 'elm'])
    assert photos.labels == ['ash', 'ash']
    assert (photos.unknown, photos.without_folder) == (dict(fir=1), 1)
    assert photos.empty == ['elm']
    assert is_sorted(tmp_path, ['ash', 'elm'])
    assert not is_sorted(tmp_path, ['oak', 'elm'])


def test_folder_of_the_phone_app_has_the_classes_of_the_app(tmp_path):
    write(tmp_path, 'ash/1.png', 'elm _x_/2.png')
    folders = {'ash': ASH, 'elm _x_': 'elm "x"'}
    facts = dict(name='', model='', classes=[], folders=folders)
    (tmp_path / 'app.json').write_text(json.dumps(facts))
    photos = sort_photos(tmp_path, [ASH, 'elm "x"'])
    assert photos.labels == [ASH, 'elm "x"']
    assert not photos.unknown and not photos.empty
    assert is_sorted(tmp_path, [ASH, 'elm "x"'])


@pytest.mark.parametrize(
    'names, message',
    [
        (['new/ash/1.png', 'new/elm/2.png'], 'give .*new$'),
        (['oak/1.png'], 'found oak; expected folders named ash, elm'),
        (['1.png'], 'photos but no folders'),
        ([], 'has no image'),
    ],
)
def test_folder_without_classes_is_refused(tmp_path, names, message):
    with pytest.raises(mmclca.Error, match=message):
        sort_photos(write(tmp_path, *names), ['ash', 'elm'])


def test_file_and_missing_folder_are_refused(tmp_path):
    file = write(tmp_path, '1.png') / '1.png'
    with pytest.raises(mmclca.Error, match='is a file'):
        sort_photos(file, ['ash', 'elm'])
    with pytest.raises(FileNotFoundError, match='does not exist'):
        sort_photos(tmp_path / 'none', ['ash', 'elm'])


@pytest.mark.slow
def test_command_measures_new_photos_and_predict_names_it(
    place, copy, run, tmp_path, capsys
):
    new = write_photos(tmp_path, per_class=2, seed=9)
    known = next(
        x for x in (place / 'photographs/train').rglob('*.*') if x.is_file()
    )
    shutil.copy(known, new / known.parent.name / f'learned{known.suffix}')
    out = tmp_path / 'results.csv'
    assert run('test', copy.folder, new, '--out', out) == 0
    printed = capsys.readouterr().out
    assert 'Promised' in printed and '1 photo was in training' in printed
    rows = [*csv.DictReader(out.open(encoding='utf-8-sig'))]
    assert sum(row['in_training'] == 'yes' for row in rows) == 1
    assert {row['correct'] for row in rows} <= {'yes', 'no'}
    assert run('predict', copy.folder, new) == 0
    assert 'mmclca test' in capsys.readouterr().err
    assert run('test', copy.folder, new, '--tta') == 2
    assert '--tta is for a config' in capsys.readouterr().err
