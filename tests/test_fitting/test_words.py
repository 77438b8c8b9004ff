# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a fit says of few and of uneven photographs."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from mmclca.fitting.record import FitRecord, ModelFolder
from mmclca.fitting.steps import say_accuracy, say_end

KNOWN = dict(accuracy=0.9, low=0.8, high=0.95)


def job_of(per_class, **parts):
    """A fit of classes with recalls, and the lines that it says."""
    rows = {x: dict(n=n, recall=r) for x, (n, r) in per_class.items()}
    more = dict(macro_recall=0.6, folds=3, repeats=5, seconds=4.2)
    known = dict(
        counts={name: row['n'] for name, row in rows.items()},
        call=dict(class_weights=None),
        probe=dict(KNOWN, **more, per_class=rows),
        final='probe',
    )
    return SimpleNamespace(
        record=FitRecord(**known | parts),
        folder=ModelFolder('my model'),
        tell=(said := []).append,
        said=said,
    )


def test_photographs_that_were_not_tested_are_not_counted():
    job = job_of(dict(ash=(3, 1.0), elm=(2, 0.5), oak=(1, None)))
    say_end(job)
    good, sure, following = job.said
    assert good.startswith('How good: 90.0% right')
    assert sure.startswith('How sure: 5 photographs, each named by models')
    assert "predict 'my model' NEW_PHOTOGRAPHS" in following


@pytest.mark.parametrize('weights', [None, 'balanced'])
def test_uneven_classes_have_a_mean_over_classes(weights):
    call = dict(class_weights=weights)
    job = job_of(dict(ash=(300, 1.0), elm=(3, 0.2)), call=call)
    say_accuracy(job)
    assert 'mean over classes: 60.0%' in job.said[1]
    assert ('--class-weights' in job.said[1]) is (weights is None)
    job = job_of(dict(ash=(5, 1.0), elm=(3, 0.2)))
    say_accuracy(job)
    assert len(job.said) == 1


def test_what_tells_most_of_a_model():
    probe = job_of(dict(ash=(3, 1.0))).record
    assert probe.best is probe.probe
    holdout, held_out = dict(KNOWN, n=50), dict(KNOWN, n=70)
    tried = replace(probe, training=dict(holdout=holdout))
    assert tried.best is probe.probe  # it was not better
    trained = replace(tried, final='trained')
    assert trained.best is holdout
    assert replace(trained, held_out=held_out).best is held_out
    job = job_of(dict(ash=(3, 1.0)))
    job.record = trained
    say_end(job)
    assert 'measured on 50 photographs held out' in job.said[1]


def test_a_trained_model_that_few_photographs_cannot_judge():
    job = job_of(dict(ash=(3, 1.0)), final='trained', training=dict(holdout=0))
    say_end(job)
    assert 'so few photographs cannot tell' in job.said[1]


def test_nothing_was_tested():
    job = job_of(dict(ash=(1, None)))
    job.record.probe.update(accuracy=None, low=None, high=None)
    say_accuracy(job)
    say_end(job)
    assert 'accuracy not known' in job.said[0]
    assert 'a second photograph' in job.said[2]
