# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Runs from scratch, and probes of the weights that they start from."""

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest
from mmengine.config import Config
from tiny_run import ROOT, exit_code, load_tool, run_tool, write_run

from mmclca.sweep.cell import Cell
from mmclca.sweep.from_scratch import probe_start, table_of_runs
from mmclca.sweep.grid import read_grid

TOOL = ROOT / 'tools/benchmark/from_scratch.py'
GRID = ROOT / 'configs/sweeps/family_from_scratch.py'
TEMPLATE = ROOT / 'docs/results/family.md.j2'


def result_of(cell, accuracy):
    return dict(
        cell=asdict(cell),
        config_hash='',
        accuracy=accuracy,
        gmacs=0.2805,
        params=5_500_000,
        throughput=dict(train=120.4, test=400.0),
        gradients={},
        commit='',
        versions=dict(python='3', torch='2', mmpretrain='1'),
        machine='a CPU',
        started='',
        finished='2026-01-02T10:00:00+00:00',
        seconds=90.0,
        cpu_seconds=84.0,
    )


@pytest.fixture(scope='module')
def cells():
    return list(read_grid(GRID).cells)


def test_the_page_has_a_name_for_every_model(cells):
    named = re.findall(r"^    '(\w+)': '", TEMPLATE.read_text(), re.M)
    assert {cell.variant for cell in cells} == set(named)


def test_a_probe_of_initial_weights(tmp_path, monkeypatch):
    """Classes of other brightness are told apart, by the same in each call."""
    cfg = Config.fromfile(write_run(tmp_path))
    found = probe_start(cfg)
    assert found.keys() == {'cls_token', 'average'}
    assert found['average'] > 90  # of the images that it was fitted to
    assert probe_start(cfg) == found


def test_table():
    one, two = (
        Cell('d', 'b', 'EViT', 1.0, 112, 'base', s, 'v') for s in (1, 2)
    )
    starts = {
        one.name: dict(cls_token=9.0, average=5.5),
        two.name: dict(cls_token=4.0, average=7.25),
    }
    results = [result_of(two, 61.26), result_of(one, 60.0)]
    text = table_of_runs(results, dict(v='ViT', other='none'), starts)
    title, _, row = (
        [cell.strip() for cell in line.strip('|').split('|')]
        for line in text.splitlines()
    )
    assert dict(zip(title, row, strict=True)) == {
        'model': 'ViT',
        'top-1, seed 1': '60.0',
        'before training, seed 1': '9.0',
        'top-1, seed 2': '61.3',
        'before training, seed 2': '7.2',
        'parameters (M)': '5.50',
        'GMACs': '0.281',
        'CPU min': '1.4',
        'images/s, training': '120',
        'images/s, test': '400',
    }


@pytest.fixture
def folder(tmp_path, cells):
    """Results and probes of all cells."""
    (tmp_path / 'starts').mkdir()
    for cell in cells:
        for where, content in (
            (tmp_path, result_of(cell, 70.0 + cell.seed)),
            (tmp_path / 'starts', dict(cls_token=8.0, average=6.0)),
        ):
            (where / f'{cell.name}.json').write_text(json.dumps(content))
    return tmp_path


def arguments(folder: Path):
    page = folder / 'page.md'
    files = dict(results=folder, grid=GRID, template=TEMPLATE, page=page)
    return [text for k, v in files.items() for text in (f'--{k}', v)]


def test_page(folder, monkeypatch):
    run_tool(monkeypatch, TOOL, *arguments(folder))
    text = (folder / 'page.md').read_text()
    for name in ('ViT-Ti, 12 layers', 'ViT-Ti, 6 layers of two parallel'):
        assert f'| {name}' in text
    assert 'a CPU; python 3, torch 2, mmpretrain 1; 2026-01-02, 12' in text


def test_no_results_yet(tmp_path, monkeypatch, capsys):
    main = load_tool(monkeypatch, TOOL, *arguments(tmp_path))['main']
    assert exit_code(main) == 2
    assert 'has no results: run' in capsys.readouterr().err
