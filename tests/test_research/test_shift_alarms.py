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


def test_all_tests_notice_a_displacement(draw, capsys):
    later = shift_alarms.measure_later(draw(), draw(1.0), None, dict(set='a'))
    same = shift_alarms.measure_same(draw(), None, dict(set='a'))
    table = pd.DataFrame([*same, *later])
    rows = table[(table.kind == 'later') & (table['size'] > 10)]
    assert (rows[[*shift_alarms.TESTS]] < shift_alarms.LEVEL).all(None)
    shift_alarms.print_table(table.assign(loss=0.2))
    assert '6 photos per class: 6 runs' in capsys.readouterr().out
