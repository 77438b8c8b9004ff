# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Result tables: sweeps, and rows measured once."""

import json

import benchmarks
import pandas as pd
import pytest
import tables
from sweep_results import result
from tiny_run import ROOT, run_tool

TOOL = ROOT / 'tools/research/tables.py'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder for study tables."""
    monkeypatch.setattr(tables, 'RESULTS', tmp_path)
    return tmp_path


def test_sweep_table_restores_results(folder):
    results = [
        dict(result(seed=1, variant='1'), gradients=dict(head=[None, 1e-9])),
        dict(result(seed=2), metrics={'accuracy/top1': 80.0}),
        dict(result(seed=3), start=dict(average=40.5)),
    ]
    tables.write_sweep(results, folder / 'few.csv')
    for found, wanted in zip(
        tables.read_sweep(folder / 'few.csv'), results, strict=True
    ):
        assert found == wanted


def test_unpacked_table_equals_results(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    run_tool(monkeypatch, TOOL, 'baselines', tmp_path, '--unpack')
    stored = tables.read_sweep(ROOT / 'docs/results/baselines.csv')
    assert tables.read_results(tmp_path) == stored


def test_rows_are_measured_once(folder):
    asked = []

    def measure(n):
        asked.append(n)
        return [dict(part=part, value=n / 3) for part in 'ab']

    for _ in range(2):
        wanted = [(dict(n=n, row=n * 'a'), (n,)) for n in (0, 1)]
        table = tables.kept('few', measure, wanted)
    assert asked == [0, 1] and len(table) == 4
    assert table.value[3] == pytest.approx(1 / 3, abs=1e-9)
    assert tables.read_machine('few')['versions']['torch']
    assert tables.read('machines').study.tolist() == ['few']


def test_benchmarks_are_merged_by_run(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmarks, 'FOLDER', tmp_path)
    row = dict(model='tiny', keep_rate='', seconds=[1.0, 2.0])
    content = dict(
        machine=dict(CPU='a CPU', versions='PyTorch 2'),
        setting=dict(device='cpu', batch=8),
    )
    for run, speed in (('one', 1.5), ('two', 2.0), ('one', 3.0)):
        results = [dict(row, speed_up=speed), dict(row, speed_up=1.0)]
        file = tmp_path / f'{run}.json'
        file.write_text(json.dumps(dict(content, results=results)))
        benchmarks.merge('speed', file)
    table = pd.read_csv(tmp_path / 'speed.csv')
    assert table.run.tolist() == ['two', 'two', 'one', 'one']
    assert table.speed_up.tolist() == [2.0, 1.0, 3.0, 1.0]
    assert 'seconds' not in table and table.batch.tolist() == [8] * 4
    machines = pd.read_csv(tmp_path / 'machines.csv')
    assert machines.run.tolist() == ['two', 'one']
    assert machines.CPU.tolist() == ['a CPU'] * 2
