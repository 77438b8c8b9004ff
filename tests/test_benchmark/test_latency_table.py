# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Latencies kept for later calls."""

import pytest

from mmclca.benchmark import latency_table
from mmclca.benchmark.latency_table import LatencyTable, look_up_or_time

SMALL = dict(type='A', backbone=dict(img_size=128), head=dict(num_classes=3))
LARGE = dict(type='A', backbone=dict(img_size=224), head=dict(num_classes=3))


@pytest.fixture
def timed(tmp_path, monkeypatch):
    """Models measured so far, with a table in a temporary folder."""
    measured = []

    def time_models(models, runtime, device, rounds):
        measured.extend(models)
        return dict.fromkeys(models, 2.0), timed.busy

    def timed():
        return measured

    timed.busy = ''
    monkeypatch.setenv('TORCH_HOME', str(tmp_path))
    monkeypatch.setattr(latency_table, 'time_models', time_models)
    return timed


def look_up(**models):
    return look_up_or_time(models, 'pytorch', 'cpu')


def test_models_are_measured_once(timed):
    assert look_up(small=SMALL) == (dict(small=2), '')
    other_head = dict(SMALL, head=dict(num_classes=40))
    assert look_up(large=LARGE, same=other_head)[0] == dict(large=2, same=2)
    assert timed() == ['small', 'large']


def test_latency_of_a_busy_machine_is_not_kept(timed):
    timed.busy = 'machine busy'
    for _ in range(2):
        assert look_up(small=SMALL) == (dict(small=2), 'machine busy')
    assert len(timed()) == 2


@pytest.mark.parametrize('part', ['machine', 'PyTorch', 'mmclca'])
def test_models_are_measured_again_if_the_origin_changes(timed, part):
    look_up(small=SMALL)
    table = LatencyTable.read('pytorch', 'cpu')
    assert table.milliseconds
    table.origin[part] = 'another'
    table.write()
    look_up(small=SMALL)
    assert len(timed()) == 2


@pytest.mark.parametrize('content', ['', '[]', '{}', '{"origin": 1}'])
def test_models_are_measured_again_if_the_table_is_damaged(timed, content):
    look_up(small=SMALL)
    LatencyTable.read('pytorch', 'cpu').path.write_text(content)
    look_up(small=SMALL)
    look_up(small=SMALL)
    assert len(timed()) == 2


def test_nothing_is_kept_if_the_folder_cannot_be_written(timed, tmp_path):
    (tmp_path / 'hub').write_text('')
    for _ in range(2):
        assert look_up(small=SMALL)[0] == dict(small=2)
    assert len(timed()) == 2
