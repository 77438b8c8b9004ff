# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Seconds and memory per step in ``fit``."""

import sys

import fit_seconds
import pandas as pd
import pytest
from tiny_photos import write_weights

CHILD = """
import time
from mmclca.utils.events import *
parent = connect_to_parent()
parent.send(StepEvent('first'))
content = bytearray(300 << 20)
for i in range(3):
    parent.send(ProgressEvent('second', i / 3, None))
    time.sleep(0.2)
parent.send({last})
"""


@pytest.fixture
def replace_child(monkeypatch):
    """Replace ``fit`` by a child which ends with an event."""

    def replace_child(last):
        command = [sys.executable, '-c', CHILD.format(last=last)]
        monkeypatch.setattr(fit_seconds, 'COMMAND', command)

    return replace_child


@pytest.mark.slow
def test_run_fit_times_the_steps_of_the_child(replace_child):
    replace_child('ResultEvent(None)')
    table = pd.DataFrame(fit_seconds.run_fit({}))
    sums = table.groupby('step').sum()
    assert {*sums.index} == {'Starting', 'first', 'second'}
    assert 0.4 <= sums.seconds['second'] < 10
    assert sums.cpu_seconds['Starting'] > 0
    assert table.peak_mib.max() > 300


@pytest.mark.slow
def test_run_fit_raises_the_error_of_the_child(replace_child):
    replace_child('ErrorEvent("no photos", is_bug=False)')
    with pytest.raises(RuntimeError, match='no photos'):
        list(fit_seconds.run_fit({}))


@pytest.mark.slow
def test_each_step_has_a_row(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(fit_seconds, 'MIN_CLASSES', 3)
    monkeypatch.setattr(fit_seconds, 'SIDE', 40)
    out, weights = tmp_path / 'seconds.csv', write_weights(tmp_path)
    words = ['9', '--weights', str(weights), '--out', str(out)]
    monkeypatch.setattr('sys.argv', ['fit_seconds.py', *words])
    fit_seconds.main()
    table = pd.read_csv(out)
    assert {*table.photos} == {9}
    assert {'Features', 'Cross-validation', 'total'} <= {*table.step}
    total = table[table.step == 'total']
    assert (total.seconds > 0).all() and (total.peak_mib > 100).all()
    assert total.peak_mib.max() == table.peak_mib.max()
    assert 'Features' in capsys.readouterr().out
