# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy across days, and none that holds for the same days only."""

import json
from dataclasses import replace

import pytest
import report_folder
from PIL import ExifTags, Image
from tiny_photos import write_weights

import mmclca
from mmclca.datasets.photos.spreads import Spread
from mmclca.fitting.accuracy_parts import Measurement
from mmclca.fitting.change_text import describe_classes
from mmclca.fitting.console_text import format_facts, result_lines
from mmclca.fitting.record import FitRecord
from mmclca.fitting.record_description import describe_record
from mmclca.page.result import describe_result
from mmclca.utils.files import read_rows

ASH, FAGUS, *_ = report_folder.CLASSES
ONE_DAY = Spread('day', 2, {FAGUS: '2023-07-14'}, [FAGUS], (1, 2))
DAYS = Spread('day', 3, {}, [], (1, 4))
GROUPS = Spread('group', 5, {FAGUS: 'plant1'}, [FAGUS], (1, 1))


def make_record(*spreads, groups=None, **changes):
    facts = report_folder.facts()
    facts['call'] = dict(photos=None, groups=groups)
    record = FitRecord.from_json(facts)
    photos = replace(record.photos, spreads=[*spreads])
    return replace(record, photos=photos, **changes)


def test_no_accuracy_is_shown_first_if_classes_and_days_coincide():
    record = make_record(ONE_DAY)
    described = describe_record(record)
    assert '72.7%' not in described.result.summary + described.result.plain
    assert FAGUS in described.why_unmeasured
    assert described.further_accuracies[0].startswith('on the same days only')
    assert '2023-07-14' in described.coinciding.lines[1]
    assert not described.claim
    assert 'not measured' in describe_result(record)
    first, second, *_ = result_lines(record)
    assert '72.7' not in first
    assert '72.7' in second


def make_across_days():
    """Record with all classes tested on other days."""
    record = make_record(DAYS, same_days=Measurement(12, 0.9, 0.6, 0.98))
    facts = record.to_json()['probe']
    for recall in facts['per_class'].values():
        recall['recall'] = 0.7
    content = json.loads(json.dumps(record.to_json() | dict(probe=facts)))
    return FitRecord.from_json(content)


@pytest.mark.parametrize(
    'changes', [{}, dict(test=Measurement(9, 0.8, 0.6, 0.9))]
)
def test_accuracy_is_shown_first_if_days_allow_or_photos_are_held_out(changes):
    record = make_record(*([ONE_DAY] if changes else [DAYS]), **changes)
    assert describe_record(record).result.plain
    assert not describe_record(record).why_unmeasured


def test_accuracy_across_days_is_first_and_that_of_same_days_second():
    described = describe_record(make_across_days())
    assert described.result.summary.startswith('72.7%')
    assert described.validity.lines == ('new photos taken on other days',)
    assert '90.0%' in described.further_accuracies[0]


def test_no_accuracy_is_shown_first_if_classes_have_one_group():
    described = describe_record(make_record(GROUPS, groups=r'plant\d+'))
    assert 'Ulmus' in described.why_unmeasured
    assert described.further_accuracies[0].startswith('on 3 of 4 classes')
    assert FAGUS in described.spreads['Groups'][1]


def test_record_without_days_has_no_new_keys_and_keeps_others():
    content = FitRecord.from_json(report_folder.facts()).to_json()
    assert not {'spreads', 'same_days'} & content.keys()
    record = make_record(ONE_DAY, same_days=Measurement(9, 0.8, 0.6, 0.9))
    written = json.loads(json.dumps(record.to_json()))
    assert FitRecord.from_json(written) == record


def write_dated(folder, label, days, in_exif=False):
    """Write two photos per day in July, dated by name or by EXIF data."""
    folder.mkdir(parents=True)
    for i, day in enumerate([*days] * 2):
        color = (80 * label, 20 * i, 255 - 60 * label)
        exif, name = Image.Exif(), f'202307{day}_10111{i}.jpg'
        if in_exif:
            exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = (
                f'2023:07:{day} 10:11:12'
            )
            name = f'leaf{"abcdef"[i]}.jpg'
        Image.new('RGB', (64, 64), color).save(folder / name, exif=exif)


@pytest.fixture
def dated(tmp_path):
    """Folder of photos of three classes on three days, and options."""
    for label, name in enumerate(('ash', 'elm', 'fir')):
        write_dated(tmp_path / 'photos' / name, label, (14, 15, 16))
    return tmp_path / 'photos', dict(
        weights=write_weights(tmp_path),
        probe_only=True,
        runtime='pytorch',
        budget='0.02GMACs',
    )


@pytest.mark.slow
def test_fit_tests_other_days_and_names_classes_of_one_day(dated, tmp_path):
    photos, options = dated
    model = mmclca.fit(photos, tmp_path / 'model', **options)
    assert model.facts['same_days']['n'] == 18
    assert model.facts['probe']['folds'] == 3
    assert model.accuracy == model.facts['probe']['accuracy']
    table = (tmp_path / 'model/photographs.csv').read_text()
    assert '2023-07-16' in table
    for path in (photos / 'fir').iterdir():
        path.rename(path.with_name(f'20230720_{path.name[9:]}'))
    model = mmclca.fit(photos, tmp_path / 'model', overwrite=True, **options)
    assert model.accuracy is None
    assert model.facts['probe']['accuracy'] is not None
    assert 'same_days' not in model.facts


@pytest.mark.slow
def test_fit_keeps_photos_of_a_day_together(dated, tmp_path):
    photos, options = dated
    model = mmclca.fit(photos, tmp_path / 'model', groups='day', **options)
    assert model.accuracy is not None
    record = FitRecord.from_json(json.loads(json.dumps(model.facts)))
    assert record.photos.groups.number == 3
    assert 'other days' in describe_record(record).validity.lines[0]
    rows = read_rows(tmp_path / 'model/photographs.csv')
    assert {row['group'] for row in rows} == {
        f'2023-07-{day}' for day in (14, 15, 16)
    }


@pytest.mark.slow
def test_add_class_keeps_the_accuracy_across_days(dated, tmp_path, capsys):
    photos, options = dated
    model = mmclca.fit(photos, tmp_path / 'model', **options)
    photos.rename(tmp_path / 'gone')
    write_dated(tmp_path / 'oak', 3, (14, 15, 17))
    model.add_class(tmp_path / 'oak', force=True)
    assert model.facts['same_days']['n'] == 24
    assert model.accuracy == model.facts['probe']['accuracy']
    write_dated(tmp_path / 'yew', 4, (15, 16, 17), in_exif=True)
    model.add_class(tmp_path / 'yew', force=True)
    assert model.facts['same_days']['n'] == 30
    assert model.accuracy is not None
    (spread,) = model.facts['spreads']
    assert (spread['kind'], spread['number']) == ('day', 4)
    rows = read_rows(tmp_path / 'model/photographs.csv')
    assert {row['day'] for row in rows if row['class'] == 'yew'} == {
        *('2023-07-15', '2023-07-16', '2023-07-17')
    }
    capsys.readouterr()
    write_dated(tmp_path / 'ivy', 5, (20,))
    model.add_class(tmp_path / 'ivy', force=True)
    assert model.accuracy is None
    lines = capsys.readouterr().out.splitlines()
    (line,) = [x for x in lines if x.startswith('Accuracy')]
    assert 'on the same days only (6' in line and 'on other days (5' in line


def test_compared_accuracies_name_their_days_only_if_they_differ():
    across = make_across_days()
    one_day = make_record(ONE_DAY)

    def compare(previous, record):
        facts = describe_classes(previous, record, [ASH])
        return [*format_facts(facts)][-1]

    assert ' days' not in compare(across, across)
    assert ' days' not in compare(make_record(), make_record())
    assert compare(across, one_day).count(' days') == 2
    assert compare(one_day, one_day).count('same days only') == 2
