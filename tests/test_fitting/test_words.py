# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a fit says of few and of uneven photographs."""

from dataclasses import replace

import pytest

from mmclca.fitting.record import FitRecord
from mmclca.fitting.screen import (
    probe_lines,
    result_lines,
    saved_lines,
    series_lines,
)

KNOWN = dict(accuracy=0.9, low=0.8, high=0.95)
SHARE = dict(low=0.01, high=0.2)
NOTHING = dict(accuracy=None, low=None, high=None)
HOLDOUT, HELD_OUT = dict(KNOWN, n=50), dict(KNOWN, n=70)
ALARMS = dict(score='nearest', threshold=0.9, false_alarms=0.06, **SHARE)
FEW = dict(ash=(3, 1.0), elm=(2, 0.5), oak=(1, None))
UNEVEN = dict(ash=(300, 1.0), elm=(3, 0.2))


def record_of(per_class, found=KNOWN, class_weights=None, **parts):
    """The record of classes with recalls."""
    rows = {x: dict(n=n, recall=r) for x, (n, r) in per_class.items()}
    more = dict(macro_recall=0.6, folds=3, repeats=5, seconds=4.2)
    return FitRecord(
        counts={name: row['n'] for name, row in rows.items()},
        call=dict(class_weights=class_weights),
        probe=dict(found, **more, per_class=rows),
        **dict(final='probe', threshold=ALARMS) | parts,
    )


TRAINED = dict(final='trained')
SAID = [
    (record_of(FEW), '90.0% accuracy (95% CI 80.0-95.0%)'),
    (record_of(FEW), 'on 5 photos, 3-fold'),
    (record_of(FEW), "predict 'my model' NEW_PHOTOS"),
    (record_of(UNEVEN), '60.0%; consider --class-weights'),
    (
        record_of(FEW, **TRAINED, training=dict(holdout=HOLDOUT)),
        '50 held-out photos',
    ),
    (
        record_of(FEW, **TRAINED, training=dict(holdout=None)),
        'before fine-tuning',
    ),
    (record_of(FEW, series=dict(ash=2, elm=3)), '5 photos of ash, elm'),
    (record_of(FEW, NOTHING), 'unknown: no class'),
    (record_of(FEW), '95% CI 1.0-20.0%'),
    (record_of(FEW, threshold=dict(score=None)), 'not flagged'),
    (record_of(FEW, NOTHING), 'a second photo'),
]
UNSAID = [
    (record_of(FEW), 'macro recall'),
    (record_of(FEW, series={}), '--groups'),
    (record_of(UNEVEN, class_weights='balanced'), '--class-weights'),
]


@pytest.mark.parametrize(
    'record, words, is_said',
    [*((*row, True) for row in SAID), *((*row, False) for row in UNSAID)],
)
def test_what_is_said(record, words, is_said):
    lines = [*probe_lines(record), *series_lines(record)]
    lines += [*result_lines(record), *saved_lines('my model', [])]
    assert (words in '\n'.join(lines)) is is_said


def test_what_tells_most_of_a_model():
    probe = record_of(FEW)
    tried = replace(probe, training=dict(holdout=HOLDOUT))
    assert tried.best is probe.probe  # it was not better
    trained = replace(tried, final='trained')
    assert trained.best is HOLDOUT
    assert replace(trained, held_out=HELD_OUT).best is HELD_OUT
