# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json

import pytest
import torch
from few_photographs_runs import probe_result, trained_results
from tiny_run import ROOT, exit_code, load_tool

from mmclca.benchmark.few_photographs.arms import OUR_PROBE, probe_arms
from mmclca.cli.commands import few_photographs as command

TOOL = ROOT / 'tools/benchmark/few_photographs.py'
TEMPLATE = ROOT / 'docs/results/few_photographs.md.j2'
GRID = ROOT / 'configs/sweeps/few_photographs.py'


def some_arms(backbone):
    """Our probe, and two others."""
    arms = probe_arms(backbone)
    return [*arms[1:3], next(arm for arm in arms if arm.line == OUR_PROBE)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Results of the probe arms of both data sets and weights."""
    monkeypatch.setattr(command, 'probe_arms', some_arms)
    (tmp_path / 'probes').mkdir()
    for dataset in ('leaf40_white', 'leaf40'):
        for backbone in ('deit-tiny-p16', 'vit-tiny-p16'):
            for arm in some_arms(backbone):
                result = probe_result(arm, range(80, 90), 0.5, dataset)
                file = tmp_path / 'probes' / f'{dataset}_{arm.name}.json'
                file.write_text(json.dumps(result))
    return tmp_path


@pytest.fixture
def run(folder, monkeypatch):
    """Run the tool; gives how many models were timed each time."""
    timed = []

    def milliseconds(models, rounds):
        timed.append(len(models))
        return dict.fromkeys(models, 12.5)

    def start(*more):
        files = dict(
            results=folder,
            grid=GRID,
            template=TEMPLATE,
            page=folder / 'page.md',
            picture=folder / 'p.png',
        )
        words = [w for k, v in files.items() for w in (f'--{k}', v)]
        words += ['--data', folder, '--weights', folder, *more]
        return exit_code(load_tool(monkeypatch, TOOL, *words)['main'])

    monkeypatch.setattr(torch, 'set_num_threads', lambda _: None)
    monkeypatch.setattr(command, 'milliseconds', milliseconds)
    start.timed = timed
    return start


def test_arms_that_are_there_are_not_measured(run, folder, capsys):
    """There are no data and no weights that anything could be measured on."""
    assert run() == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        str(folder / 'page.md'),
        str(folder / 'p.png'),
    ]
    assert '12.5' in (folder / 'page.md').read_text()
    assert '- CPU: a CPU' in (folder / 'page.md').read_text()
    assert run() == 0 and len(run.timed) == 1  # read again


def test_trained_arms_are_timed_beside_the_others(run, folder):
    assert run('--page-only') == 0
    common = dict(
        config_hash='',
        params=1,
        throughput={},
        gradients={},
        commit='',
        versions=dict.fromkeys(
            ('python', 'torch', 'mmpretrain', 'timm', 'PIL'), '1'
        ),
        machine='a CPU',
        started='',
        finished='2026-01-02T10:00:00+00:00',
    )
    more = dict(backbone='lf-evit_deit-tiny-p16')
    results = [
        *trained_results('ours', 'base', [90.0, 91.0], 0.4, 0.1, **more),
        *trained_results('paper', 'clca', [80.0, 82.0], 0.5, 0.1),
    ]
    for i, result in enumerate(results):
        file = folder / f'{i}.json'
        file.write_text(json.dumps(result | common))
    assert run('--page-only') == 0
    first, second = run.timed
    assert second == first + 2
    text = (folder / 'page.md').read_text()
    assert '## Trained and frozen' in text and 'CLCA, as in the paper' in text
    assert 'trained: 2026-01-02, 4 runs' in text


def test_missing_data_are_told_in_one_line(run, folder, capsys):
    next((folder / 'probes').glob('leaf40_*knn.json')).unlink()
    assert run() != 0
    assert len(capsys.readouterr().err.splitlines()[-1]) > 10
