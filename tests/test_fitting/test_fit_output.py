# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Printed lines and photographs.csv."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from mmclca.checkpoints.gate.photo_table import PhotoFiles
from mmclca.datasets.photos import LabeledImages, PhotoCheck
from mmclca.fitting import probing
from mmclca.fitting.accuracy_parts import (
    ClassRecall,
    Estimate,
    FinetuneVal,
    Measurement,
    Training,
)
from mmclca.fitting.console_text import (
    near_duplicate_lines,
    plain_result_lines,
    result_lines,
)
from mmclca.fitting.options import FitOptions
from mmclca.fitting.photo_table import list_photo_rows
from mmclca.fitting.record import FitCall, FitRecord
from mmclca.fitting.record_parts import Photos, ThresholdEstimate
from mmclca.languages import Note
from mmclca.utils.files import write_rows

MEASURED = dict(accuracy=0.9, low=0.8, high=0.95)
UNMEASURED = dict(accuracy=None, low=None, high=None)
FINETUNE_VAL = FinetuneVal(50, **MEASURED, probe_accuracy=0.8)
TEST = Measurement(70, **MEASURED)
THRESHOLD = ThresholdEstimate('nearest', 0.9, 0.95, 20, 0.06, 0.01, 0.2)
ONE = dict(ash=(1, None), elm=(1, None))
FEW = dict(ash=(3, 1.0), elm=(2, 0.5), oak=(1, None))
UNEVEN = dict(ash=(300, 1.0), elm=(3, 0.2))


def make_record(
    per_class,
    measured=MEASURED,
    groups=None,
    near_duplicate_counts=(),
    **parts,
):
    """Record with a number of photos and a recall per class."""
    probe = Estimate(
        classifier='ridge',
        alpha=1.0,
        late_cls_weight=0.0,
        temperature=1.0,
        folds=0 if measured is UNMEASURED else 3,
        repeats=5,
        macro_recall=None if measured is UNMEASURED else 0.6,
        per_class={x: ClassRecall(n, r) for x, (n, r) in per_class.items()},
        seconds=4.2,
        **measured,
    )
    photos = Photos(
        counts={name: n for name, (n, _) in per_class.items()},
        near_duplicate_counts=dict(near_duplicate_counts),
    )
    return FitRecord(
        call=FitCall('photos', FitOptions(groups=groups)),
        photos=photos,
        probe=probe,
        **dict(final='probe', threshold=THRESHOLD) | parts,
    )


def trained(finetune_val):
    training = Training(20, 60.0, finetune_val)
    return make_record(FEW, final='trained', training=training)


@pytest.mark.parametrize(
    'record, term',
    [
        (make_record(UNEVEN), '--class-weights'),
        (trained(FINETUNE_VAL), '50 photos held out'),
        (trained(FINETUNE_VAL), 'before fine-tuning'),
        (trained(None), 'not measured'),
        (
            make_record(FEW, near_duplicate_counts=dict(ash=2, elm=3)),
            'Near-dupl.',
        ),
        (make_record(UNEVEN, groups='plant'), 'new groups'),
        (make_record(FEW, test=TEST), 'like those in val and test'),
        (make_record(ONE, UNMEASURED), 'second photo'),
        (make_record(FEW, UNMEASURED), 'near-duplicates'),
        (make_record(FEW, UNMEASURED, groups='plant'), 'one group'),
        (make_record(FEW, threshold=ThresholdEstimate()), 'off'),
    ],
)
def test_lines_have_a_note_only_if_it_applies(record, term):
    for one, is_printed in ((record, True), (make_record(FEW), False)):
        lines = [
            *near_duplicate_lines(one),
            *result_lines(one, is_console=True),
        ]
        assert (term in '\n'.join(lines)) is is_printed


@pytest.mark.parametrize(
    'record, words',
    [
        (make_record(FEW), ['about 90', 'between 80 and 95', 'Valid for']),
        (make_record(FEW, test=TEST), ['about 90', 'val and test']),
        (trained(FINETUNE_VAL), ['about 90']),
        (trained(None), ['Before fine-tuning', 'about 90']),
        (make_record(ONE, UNMEASURED), ['not measured', 'second photo']),
    ],
)
def test_plain_result_has_no_option_or_statistics(record, words):
    lines = '\n'.join(plain_result_lines(record))
    assert all(word in lines for word in words)
    for jargon in ('--', 'CI', 'cross-validation', 'probe', 'similarity'):
        assert jargon not in lines


def test_macro_recall_is_omitted_if_it_was_not_measured():
    assert 'macro recall' in '\n'.join(result_lines(make_record(UNEVEN)))
    unmeasured = make_record(UNEVEN, UNMEASURED)
    assert 'macro recall' not in '\n'.join(result_lines(unmeasured))


@pytest.mark.parametrize(
    'record',
    [make_record(UNEVEN), make_record(FEW, UNMEASURED), trained(None)],
)
def test_result_names_no_options_if_it_is_shown_on_a_page(record):
    assert '--' not in '\n'.join(result_lines(record))
    assert '--' in '\n'.join(result_lines(record, is_console=True))


def test_best_measurement_prefers_test_photos_to_holdout_to_folds():
    probe = make_record(FEW)
    discarded = replace(probe, training=Training(20, 60.0, FINETUNE_VAL))
    assert discarded.best is probe.probe
    kept = replace(discarded, final='trained')
    assert kept.best is FINETUNE_VAL
    assert replace(kept, test=TEST).best is TEST


PHOTOS = LabeledImages(
    paths=['/a/0.jpg', '/a/1.jpg', '/b/0.jpg', '/b/1.jpg'],
    labels=[0, 0, 1, 1],
    classes=['ash', 'elm, the'],
    groups=['p1', 'p1', 'p2', 'p3'],
    splits=['train', 'train', 'train', 'test'],
    source='/',
    unused={'/a/note.doc': Note('photos.no_class_folder')},
)
CHECKED = PhotoCheck(
    photos=PHOTOS,
    unreadable={'/a/2.jpg': 'cut short'},
    duplicates=[('/a/3.jpg', '/a/0.jpg')],
    conflicting_labels=[('/a/4.jpg', '/b/4.jpg')],
    cross_split_duplicates=[('/b/5.jpg', '/b/1.jpg')],
    untrained_classes={},
    files=PhotoFiles({'/a/0.jpg': 'd0'}),
)


class FakePlan(SimpleNamespace):
    def with_groups(self, checked):
        return FakePlan(**{**vars(self), 'checked': checked})


def test_near_duplicates_are_joined_and_noted_once(monkeypatch):
    pairs = [('/a/0.jpg', '/a/1.jpg'), ('/a/1.jpg', '/b/0.jpg')]
    monkeypatch.setattr(probing, 'find_near_duplicates', lambda *_: pairs)
    record = FitRecord()
    for _ in range(2):  # the second one resumes
        plan = FakePlan(
            training_photos=PHOTOS.select([0, 1, 2]),
            views=torch.zeros(3, 1, 2),
            checked=CHECKED,
            adds_photos=False,
        )
        plan, record = probing.join_near_duplicates(plan, record)
        assert plan.checked.photos.groups == ['p1', 'p1', 'p1', 'p3']
        assert CHECKED.photos.groups == ['p1', 'p1', 'p2', 'p3']
        assert record.photos.near_duplicate_counts == dict(ash=2)
        (problem,) = (
            problem
            for problem in record.photos.problems
            if problem.kind == 'conflicting_near_duplicates'
        )
        assert problem.label == 'Warning'
        assert problem.cases == (('a/1.jpg', 'b/0.jpg'),)
        monkeypatch.delattr(probing, 'find_near_duplicates', raising=False)


TABLE = """path,class,group,split,used,why_not,predicted,p_given,p_predicted,\
digest,near_duplicates
/a/0.jpg,ash,p1,train,True,,ash,0.900000,0.900000,d0,/a/1.jpg
/a/1.jpg,ash,p1,train,True,,"elm, the",0.200000,0.800000,,/a/0.jpg | /b/0.jpg
/b/0.jpg,"elm, the",p2,train,True,,,,,,/a/1.jpg
/b/1.jpg,"elm, the",p3,test,False,held out in test,,,,,
/a/note.doc,,,,False,not in a class folder,,,,,
/a/2.jpg,,,,False,cut short,,,,,
/a/3.jpg,,,,False,same as /a/0.jpg,,,,,
/b/5.jpg,,,,False,same as /b/1.jpg,,,,,
/a/4.jpg,,,,False,same photo in several classes,,,,,
/b/4.jpg,,,,False,same photo in several classes,,,,,
"""


def test_table_has_a_row_per_photo(tmp_path):
    probabilities = torch.tensor([[0.9, 0.1], [0.2, 0.8], [torch.nan] * 2])
    pairs = [('/a/0.jpg', '/a/1.jpg'), ('/a/1.jpg', '/b/0.jpg')]
    checked = replace(CHECKED, near_duplicates=pairs)
    write_rows(tmp_path / 'rows.csv', list_photo_rows(checked, probabilities))
    assert (tmp_path / 'rows.csv').read_text() == TABLE
