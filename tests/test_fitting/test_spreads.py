# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy across days, and none that holds for the same days only."""

import json
from dataclasses import replace

import pytest
import report_folder
from PIL import Image
from tiny_photos import write_weights

import mmclca
from mmclca.datasets.photos.spreads import Spread
from mmclca.fitting.accuracy_parts import Measurement
from mmclca.fitting.console_text import result_lines
from mmclca.fitting.record import FitRecord
from mmclca.fitting.record_description import describe_record
from mmclca.page.result import describe_result

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


@pytest.mark.parametrize(
    'changes', [{}, dict(test=Measurement(9, 0.8, 0.6, 0.9))]
)
def test_accuracy_is_shown_first_if_days_allow_or_photos_are_held_out(changes):
    record = make_record(*([ONE_DAY] if changes else [DAYS]), **changes)
    assert describe_record(record).result.plain
    assert not describe_record(record).why_unmeasured


def test_accuracy_across_days_is_first_and_that_of_same_days_second():
    record = make_record(DAYS, same_days=Measurement(12, 0.9, 0.6, 0.98))
    facts = record.to_json()['probe']
    for recall in facts['per_class'].values():
        recall['recall'] = 0.7
    content = json.loads(json.dumps(record.to_json() | dict(probe=facts)))
    tested = FitRecord.from_json(content)
    described = describe_record(tested)
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


@pytest.mark.slow
def test_fit_tests_other_days_and_names_classes_of_one_day(tmp_path):
    weights = write_weights(tmp_path)
    options = dict(
        weights=weights, probe_only=True, runtime='pytorch', budget='0.02GMACs'
    )
    for label, name in enumerate(('ash', 'elm', 'fir')):
        for i in range(6):
            day = 14 + i % 3
            path = tmp_path / f'photos/{name}/202307{day}_10111{i}.png'
            path.parent.mkdir(parents=True, exist_ok=True)
            color = (80 * label, 20 * i, 255 - 60 * label)
            Image.new('RGB', (64, 64), color).save(path)
    model = mmclca.fit(tmp_path / 'photos', tmp_path / 'model', **options)
    assert model.facts['same_days']['n'] == 18
    assert model.facts['probe']['folds'] == 3
    assert model.accuracy == model.facts['probe']['accuracy']
    table = (tmp_path / 'model/photographs.csv').read_text()
    assert '2023-07-16' in table
    for path in (tmp_path / 'photos/fir').iterdir():
        path.rename(path.with_name(f'20230720_{path.name[9:]}'))
    model = mmclca.fit(
        tmp_path / 'photos', tmp_path / 'model', overwrite=True, **options
    )
    assert model.accuracy is None
    assert model.facts['probe']['accuracy'] is not None
    assert 'same_days' not in model.facts
