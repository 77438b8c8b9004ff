# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Printed lines and photographs.csv."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from mmclca.datasets.photos import LabeledImages, PhotoCheck
from mmclca.fitting import probing
from mmclca.fitting.probing import photo_rows
from mmclca.fitting.record import FitRecord
from mmclca.fitting.screen import result_lines, series_lines
from mmclca.utils.files import write_rows

KNOWN = dict(accuracy=0.9, low=0.8, high=0.95)
NOTHING = dict(accuracy=None, low=None, high=None)
FINETUNE_VAL, TEST = dict(KNOWN, n=50), dict(KNOWN, n=70)
THRESHOLD = dict(
    score='nearest', threshold=0.9, false_alarms=0.06, low=0.01, high=0.2
)
ONE = dict(ash=(1, None), elm=(1, None))
FEW = dict(ash=(3, 1.0), elm=(2, 0.5), oak=(1, None))
UNEVEN = dict(ash=(300, 1.0), elm=(3, 0.2))


def record_of(per_class, found=KNOWN, groups=None, **parts):
    """Record with a number of photos and a recall per class."""
    rows = {x: dict(n=n, recall=r) for x, (n, r) in per_class.items()}
    more = dict(macro_recall=0.6, folds=3, repeats=5, seconds=4.2)
    return FitRecord(
        counts={name: row['n'] for name, row in rows.items()},
        call=dict(class_weights=None, groups=groups),
        probe=dict(found, **more, per_class=rows),
        **dict(final='probe', threshold=THRESHOLD) | parts,
    )


def trained(finetune_val):
    return record_of(
        FEW, final='trained', training=dict(finetune_val=finetune_val)
    )


@pytest.mark.parametrize(
    'record, term',
    [
        (record_of(UNEVEN), '--class-weights'),
        (trained(FINETUNE_VAL), '50 held-out'),
        (trained(FINETUNE_VAL), 'before fine-tuning'),
        (trained(None), 'not measured'),
        (
            record_of(FEW, near_duplicate_counts=dict(ash=2, elm=3)),
            'Near-dupl.',
        ),
        (record_of(FEW, groups='plant'), 'new groups'),
        (record_of(FEW, test=TEST), 'like those in val and test'),
        (record_of(ONE, NOTHING), 'second photo'),
        (record_of(FEW, NOTHING), 'near-duplicates'),
        (record_of(FEW, NOTHING, groups='plant'), 'one group'),
        (record_of(FEW, threshold=dict(score=None)), 'off'),
    ],
)
def test_lines_have_a_note_only_if_it_applies(record, term):
    for one, is_printed in ((record, True), (record_of(FEW), False)):
        lines = [*series_lines(one), *result_lines(one, is_console=True)]
        assert (term in '\n'.join(lines)) is is_printed


@pytest.mark.parametrize(
    'record', [record_of(UNEVEN), record_of(FEW, NOTHING), trained(None)]
)
def test_result_names_no_options_if_it_is_shown_on_a_page(record):
    assert '--' not in '\n'.join(result_lines(record))
    assert '--' in '\n'.join(result_lines(record, is_console=True))


def test_best_measurement_prefers_test_photos_to_holdout_to_folds():
    probe = record_of(FEW)
    discarded = replace(probe, training=dict(finetune_val=FINETUNE_VAL))
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
    unused={'/a/note.doc': 'no image'},
)
CHECKED = PhotoCheck(
    photos=PHOTOS,
    unreadable={'/a/2.jpg': 'cut short'},
    duplicates=[('/a/3.jpg', '/a/0.jpg')],
    conflicting_labels=[('/a/4.jpg', '/b/4.jpg')],
    cross_split_duplicates=[('/b/5.jpg', '/b/1.jpg')],
    untrained_classes={},
    digests={'/a/0.jpg': 'd0'},
)


def test_near_duplicates_are_joined_and_noted_once(monkeypatch):
    pairs = [('/a/0.jpg', '/a/1.jpg'), ('/a/1.jpg', '/b/0.jpg')]
    monkeypatch.setattr(probing, 'find_near_duplicates', lambda *_: pairs)
    record = FitRecord()
    for _ in range(2):  # the second one resumes
        plan = SimpleNamespace(
            training=PHOTOS.select([0, 1, 2]),
            views=torch.zeros(3, 1, 2),
            checked=replace(CHECKED),
        )
        record = probing.join_near_duplicates(plan, record)
        assert plan.checked.photos.groups == ['p1', 'p1', 'p1', 'p3']
        assert record.near_duplicate_counts == dict(ash=2)
        (problem,) = (
            problem
            for problem in record.problems
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
/a/note.doc,,,,False,no image,,,,,
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
    write_rows(tmp_path / 'rows.csv', photo_rows(checked, probabilities))
    assert (tmp_path / 'rows.csv').read_text() == TABLE
