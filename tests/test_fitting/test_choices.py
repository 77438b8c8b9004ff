# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which model is taken, and whether it is trained."""

import pytest

from mmclca.fitting import improving
from mmclca.fitting.candidates import ACCURACY
from mmclca.fitting.costs import choose, parse_budget
from mmclca.fitting.improving import errors_removed
from mmclca.models import Variant

PAIR = Variant(None, 1.0, 224), Variant('EViT', 0.5, 224)


@pytest.mark.parametrize(
    'text, budget',
    [
        ('0.5GMACs', (0.5, 'GMACs')),
        ('.5 gmacs', (0.5, 'GMACs')),
        ('20ms', (20, 'ms')),
    ],
)
def test_budgets(text, budget):
    assert parse_budget(text) == budget


@pytest.mark.parametrize('text', ['20', 'ms', '20 s', '0ms', '-1ms', ''])
def test_no_budgets(text):
    with pytest.raises(ValueError, match='such as 0.5GMACs or 20ms'):
        parse_budget(text)


def test_the_most_accurate_within_a_budget():
    def costs(unit):
        return dict(GMACs=[1.2, 0.6], ms=[8, 9])[unit]

    assert choose(PAIR, '1.2GMACs', costs) is PAIR[0]
    assert choose(PAIR, '1GMACs', costs) is PAIR[1]
    assert choose(PAIR, '8ms', costs) is PAIR[0]
    with pytest.raises(ValueError, match='least is 0.6 GMACs .EViT keep'):
        choose(PAIR, '0.5GMACs', costs)


def test_nothing_is_measured_without_a_budget():
    assert choose(PAIR, None, None) is PAIR[0]


def test_the_table_is_sorted_by_accuracy():
    accuracies = [*ACCURACY.values()]
    assert accuracies == sorted(accuracies, reverse=True)


@pytest.fixture
def measured(monkeypatch):
    table = (
        (0.1, 0.6, 0.8),  # half of the errors
        (0.1, 0.8, 0.8),
        (0.5, 0.8, 0.85),
    )
    monkeypatch.setattr(improving, 'MEASURED', table)


@pytest.mark.parametrize(
    'accuracy, keep_rate, removed',
    [
        *((0.6, 0.1, 0.5), (0.8, 0.1, 0), (0.7, 0.1, 0.25)),
        *((0.2, 0.1, 0.5), (0.9, 0.5, 0.25), (0.6, 0.3, 0.375)),
        (0.6, 1.0, 0.25),
    ],
)
def test_between_what_was_measured(measured, accuracy, keep_rate, removed):
    assert errors_removed(accuracy, keep_rate) == pytest.approx(removed)
