# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which model is taken, whether it is trained, and what is held out."""

import pytest

from mmclca.datasets.photographs import Photographs
from mmclca.fitting import training
from mmclca.fitting.model import ACCURACY, choose, parse_budget
from mmclca.fitting.training import errors_removed, hold_out, is_enough
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
    costs = dict(zip(PAIR, (1.2, 0.6), strict=True))
    assert choose(costs, 1.2, 'GMACs') is PAIR[0]
    assert choose(costs, 1, 'GMACs') is PAIR[1]
    with pytest.raises(ValueError, match='least is 0.6 GMACs .EViT keep'):
        choose(costs, 0.5, 'GMACs')


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
    monkeypatch.setattr(training, 'MEASURED', table)


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


def photographs(*counts, groups=None):
    labels = [i for i, n in enumerate(counts) for _ in range(n)]
    paths = [f'{n}.jpg' for n in range(len(labels))]
    classes = [f'class {i}' for i in range(len(counts))]
    return Photographs(paths, labels, classes, groups, [''] * len(paths), '.')


def test_a_fifth_of_each_class():
    found = photographs(10, 5, 1)
    train, held_out = hold_out(found)
    assert sorted(train + held_out) == [*range(16)]
    assert [found.labels[i] for i in held_out].count(0) == 2
    assert [found.labels[i] for i in held_out].count(1) == 1
    assert 15 in train  # the only one of its class


def test_groups_are_not_parted():
    groups = ['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd']
    train, held_out = hold_out(photographs(4, 4, groups=groups))
    assert held_out
    assert not {groups[i] for i in train} & {groups[i] for i in held_out}


@pytest.mark.parametrize(
    'counts, enough',
    [
        ((100, 100), True),
        ((100, 99), False),
        ((8,) * 25, True),
        ((7,) * 30, False),
        ((300, 3, 3), False),
    ],
)
def test_how_many_tell_how_good_a_model_is(counts, enough):
    assert is_enough(photographs(*counts)) is enough
