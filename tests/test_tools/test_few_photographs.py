# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json
from types import SimpleNamespace

import pytest
import torch
from few_photographs_runs import BACKBONE, probe_result, trained_results
from tiny_run import ROOT, exit_code, load_tool

from mmclca.benchmark.few_photographs.arms import probe_arms
from mmclca.cli.commands import few_photographs as command

TOOL = ROOT / 'tools/benchmark/few_photographs.py'
FILES = dict(
    grid=ROOT / 'configs/sweeps/few_photographs.py',
    template=ROOT / 'docs/results/few_photographs.md.j2',
)
OF_A_SWEEP = dict(
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


def some_arms(backbone):
    """What the page tells of in its text: at most half of the tokens go, or
    nine tenths."""
    return [
        arm
        for arm in probe_arms(backbone)
        if arm.frozen.method != 'ToMe'
        and arm.frozen.keep_rate != 0.25
        and arm.frozen.img_size in (224, 192, 160)
        and len(arm.layers) in (1, 9)
    ]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Results of arms; there are no data that others could be measured on."""
    monkeypatch.setattr(command, 'probe_arms', some_arms)
    (tmp_path / 'probes').mkdir()
    for arm in some_arms(BACKBONE):
        file = tmp_path / 'probes' / f'leaf40_white_{arm.name}.json'
        file.write_text(json.dumps(probe_result(arm, range(80, 90), 0.5)))
    return tmp_path


@pytest.fixture
def timed(monkeypatch):
    """The models that are timed, each time."""
    names = []

    def milliseconds(models, rounds):
        names.append(list(models))
        return dict.fromkeys(models, 12.5)

    monkeypatch.setattr(command, 'milliseconds', milliseconds)
    return names


def run(monkeypatch, folder, *more):
    monkeypatch.setattr(torch, 'set_num_threads', lambda _: None)
    own = dict(
        results='',
        why='why',
        page='page.md',
        picture='p.png',
        data='',
        weights='',
    )
    files = FILES | {name: folder / file for name, file in own.items()}
    words = [word for k, v in files.items() for word in (f'--{k}', v)]
    words += ['--datasets', 'leaf40_white', '--backbones', BACKBONE]
    return exit_code(load_tool(monkeypatch, TOOL, *words, *more)['main'])


def test_page_of_what_is_there(monkeypatch, folder, timed, capsys):
    more = dict(backbone=f'lf-evit_{BACKBONE}')
    results = [
        *trained_results('ours', 'base', [90.0, 91.0], 0.4, 0.1, **more),
        *trained_results('paper', 'clca', [80.0, 82.0], 0.5, 0.1),
    ]
    for i, result in enumerate(results):
        file = folder / f'{i}.json'
        file.write_text(json.dumps(result | OF_A_SWEEP))
    (change,) = trained_results('mixup', 'base', [93.0], 0.4, 0.1, **more)
    (folder / 'why').mkdir()
    (folder / 'why/0.json').write_text(json.dumps(change | OF_A_SWEEP))
    assert run(monkeypatch, folder) == 0
    page, picture = folder / 'page.md', folder / 'p.png'
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2:] == [str(page), str(picture)]
    (models,) = timed
    assert f'ours_base_lf-evit_{BACKBONE}_evit-kr10_224px' in models
    assert len(models) == len({arm.network for arm in some_arms(BACKBONE)}) + 2
    text = page.read_text()
    for part in (
        '## Trained',
        '## What helped',
        'one draw only',
        'CLCA, as in the paper',
        '12.5',
        '- CPU: a CPU',
    ):
        assert part in text
    assert 'trained: 2026-01-02, 5 runs' in text and '- ms: 2' in text


def test_models_are_timed_again_when_others_come(tmp_path, timed):
    args = SimpleNamespace(results=tmp_path, rounds=1)
    models = {arm.network: dict(arm=arm.name) for arm in some_arms(BACKBONE)}
    times = command.speeds(args, models, {})
    assert command.speeds(args, models, {}) == times and len(timed) == 1
    more = models | dict(another=dict(type='Another'))
    found = command.speeds(args, more, {})['milliseconds']
    assert found == times['milliseconds'] | dict(another=12.5)
    changed = more | dict(another=dict(type='Changed'))
    command.speeds(args, changed, {})
    assert [len(names) for names in timed] == [
        len(models),
        len(more),
        len(more),
    ]


def test_missing_data_are_told_in_one_line(monkeypatch, folder, capsys):
    next((folder / 'probes').glob('*knn.json')).unlink()
    assert run(monkeypatch, folder) == 2
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    assert f'there is no {folder}/leaf40_white: --data' in line
