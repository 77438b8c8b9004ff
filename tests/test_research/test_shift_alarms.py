# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Alarms about other photos, on random features."""

import pandas as pd
import pytest
import shift_alarms
import torch
from shift_alarms import Features


@pytest.fixture
def draw(monkeypatch):
    """Draw features of three classes, displaced in all directions."""
    monkeypatch.setattr(shift_alarms, 'COUNTS', (6,))
    monkeypatch.setattr(shift_alarms, 'NUM_DRAWS', 2)
    monkeypatch.setattr(shift_alarms, 'NUM_PERMUTATIONS', 39)
    generator = torch.Generator().manual_seed(0)

    def draw(shift=0.0):
        labels = torch.arange(3).repeat_interleave(30)
        centers = torch.nn.functional.one_hot(labels, 16).float()
        noise = 0.2 * torch.randn(90, 16, generator=generator)
        return Features(centers + noise + shift, labels, labels < 0)

    return draw


def test_no_test_alarms_often_on_photos_of_the_same_session(draw):
    table = pd.DataFrame(shift_alarms.measure_same(draw(), None, {}))
    assert {*table.kind} == {'same', 'few', 'one'}
    assert (table[[*shift_alarms.TESTS]] < 0.01).mean().max() < 0.2


@pytest.mark.slow
def test_all_tests_notice_a_displacement(draw, capsys):
    later = shift_alarms.measure_later(draw(), draw(1.0), None, dict(set='a'))
    same = shift_alarms.measure_same(draw(), None, dict(set='a'))
    table = pd.DataFrame([*same, *later])
    rows = table[(table.kind == 'later') & (table['size'] > 10)]
    tests = {*shift_alarms.TESTS} - {'labels of all new photos'}
    assert (rows[[*tests]] < shift_alarms.LEVEL).all(None)
    left_out = {shift_alarms.LEFT_OUT: table['ratio only']}
    shift_alarms.print_table(table.assign(loss=0.2, **left_out))
    assert '6 photos per class: 6 runs' in capsys.readouterr().out


def test_label_test_compares_accuracies():
    correct = torch.ones(20) > 0
    lower = shift_alarms.Trial(*[None] * 4, correct, correct[:10] < 0)
    assert shift_alarms.label_test(lower) < 0.001
    equal = shift_alarms.Trial(*[None] * 4, correct, correct[:10])
    assert shift_alarms.label_test(equal) == 1


def test_left_out_rule_is_the_best_one_for_other_datasets():
    first, second = [*shift_alarms.RULES][:2]
    same = dict(kind='same', loss=float('nan'), count=3)
    later = dict(kind='later', loss=0.2, count=3)
    silent = dict.fromkeys(shift_alarms.RULES, 1.0)
    rows = []
    for name, alarming in (('a', first), ('b', second)):
        rows.append(dict(same, set=name, **silent))
        rows.append(dict(later, set=name, **silent | {alarming: 0.01}))
    table = pd.DataFrame(rows)
    assert shift_alarms.choose_rule(table[table.set == 'a']) == first
    # each dataset is tested by the best rule for the other one
    assert (shift_alarms.choose_left_out(table) == 1).all()
    table.loc[table.kind == 'same', first] = 0.01
    assert shift_alarms.choose_rule(table) == second
