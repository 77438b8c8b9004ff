# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Confirmation of additions to a model."""

import io
import sys
from dataclasses import replace

import pytest

from mmclca.fitting import FittedModel, confirmation
from mmclca.fitting.accuracy_parts import Estimate, Measurement
from mmclca.fitting.confirmation import ConfirmationError, check_accuracy
from mmclca.fitting.record import FitRecord


@pytest.mark.parametrize(
    'name, other, expected',
    [
        *(('nazli', 'Nazli', True), ('Nazlı', 'Nazli', True)),
        *(('red oak', 'red-oak', True), ('Buzgulu', 'Buzgülü', True)),
        *(('cultivar_08', 'cultivar_07', False), ('ash', 'oak', False)),
    ],
)
def test_is_similar_recognizes_misspelled_names(name, other, expected):
    assert confirmation.is_similar(name, other) is expected


def record_with(accuracy, low=None):
    """Record with the accuracy of a linear probe."""
    parts = dict(alpha=1.0, late_cls_weight=0.0, temperature=1.0)
    parts |= dict(folds=3, repeats=5, high=None, macro_recall=None)
    probe = Estimate(
        'ridge', accuracy=accuracy, low=low, per_class={}, seconds=1.0, **parts
    )
    return FitRecord(probe=probe)


def test_check_accuracy_asks_only_below_the_interval():
    previous = record_with(0.8, 0.6)
    for accuracy in (0.61, 0.9, None):
        check_accuracy(previous, record_with(accuracy))
    check_accuracy(record_with(None), record_with(0.1))
    with pytest.raises(ConfirmationError, match='80.0% to 59.0%'):
        check_accuracy(previous, record_with(0.59))


def test_check_accuracy_compares_the_same_days_if_days_were_added():
    across = replace(
        record_with(0.4, 0.2), same_days=Measurement(9, 0.78, 0.65, 0.9)
    )
    one_day = record_with(0.8, 0.6)
    check_accuracy(one_day, across)
    check_accuracy(across, record_with(0.7))
    for before, after in (
        (one_day, replace(across, same_days=Measurement(9, 0.5, 0.3, 0.7))),
        (across, record_with(0.6)),
    ):
        with pytest.raises(ConfirmationError, match='would fall from'):
            check_accuracy(before, after)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def answer(monkeypatch, text):
    monkeypatch.setattr(sys, 'stdin', Terminal(text))
    monkeypatch.setattr(sys, 'stderr', Terminal())


@pytest.mark.slow
def test_add_class_asks_before_a_change_that_may_be_a_mistake(
    copy, place, run, monkeypatch, capsys
):
    new = place / 'larch'
    before = (copy.folder / 'fit.json').read_text()
    assert run('add-class', copy.folder, new, '--name', 'Ash') == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "'ash'" in line and '--yes' in line and 'force' not in line
    with monkeypatch.context() as patch:
        for text in ('n\n', ''):
            answer(patch, text)
            assert run('add-class', copy.folder, new, '--name', 'Ash') == 2
    with pytest.raises(ConfirmationError, match='force=True'):
        copy.add_class(new, 'Ash')

    def refuse(*_):
        raise ConfirmationError('change.would_join', name='a', new='b')

    monkeypatch.setattr('mmclca.fitting.refitting.check_accuracy', refuse)
    assert run('add-class', copy.folder, new) == 2
    assert not (copy.folder / '.draft').exists()
    assert (copy.folder / 'fit.json').read_text() == before
    with monkeypatch.context() as patch:
        answer(patch, 'y\n')
        assert run('add-class', copy.folder, new) == 0
    assert FittedModel(copy.folder).classes[-1] == 'larch'
    assert run('add-class', copy.folder, new, '--name', 'lärch') == 2
