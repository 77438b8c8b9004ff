# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""tools/sweep.py: what it refuses, and sweeps for real."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from PIL import Image
from tiny_run import ROOT, environment, load_tool, run_tool

TOOL = ROOT / 'tools' / 'sweep.py'
GRID = """
datasets = ['leaf40']
backbones = ['vit-mini-p14']
methods = ['EViT']
keep_rates = [0.5]
sizes = [56]
clca = ['base', 'clca']
seeds = [1, 2]
options = {
    'train_cfg.max_epochs': 1,
    'train_dataloader.num_workers': 0,
    'test_dataloader.num_workers': 0,
    'train_dataloader.batch_size': 4,
}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A grid, and of leaf40 four grey images in each list."""
    root = tmp_path / 'data' / 'leaf40_white'
    (root / 'images').mkdir(parents=True)
    (root / 'classes.txt').write_text('\n'.join(map(str, range(40))))
    lines = []
    for n in range(4):
        Image.new('RGB', (60, 60), (60 * n,) * 3).save(root / f'{n}.png')
        lines.append(f'{n}.png {n}\n')
    for name in ('train_3shot', 'test'):
        (root / f'{name}.txt').write_text(''.join(lines))
    (tmp_path / 'grid.py').write_text(GRID)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('MMCLCA_DATA', str(tmp_path / 'data'))
    return tmp_path


@pytest.mark.parametrize(
    'arguments, said',
    [
        (['grid.py', '--jobs', '0'], '--jobs must be at least 1'),
        (['grid.py', '--threads', '-1'], '--threads must be at least 1'),
        (['nowhere.py'], 'there is no grid nowhere.py'),
        (['bad.py'], "methods: no 'Evit'"),
    ],
)
def test_bad_command_lines(folder, monkeypatch, capsys, arguments, said):
    (folder / 'bad.py').write_text(GRID.replace('EViT', 'Evit'))
    with pytest.raises(SystemExit) as error:
        run_tool(monkeypatch, TOOL, *arguments)
    assert error.value.code != 0
    assert said in capsys.readouterr().err + str(error.value)


def test_a_report_of_nothing_says_how_to_get_some(folder, monkeypatch):
    with pytest.raises(SystemExit) as error:
        run_tool(monkeypatch, TOOL, 'grid.py', '--report')
    assert 'no results' in str(error.value)


@pytest.mark.parametrize(
    'named, numbers', [('2,3', [2, 3]), ('1', [1]), ('', []), (None, [])]
)
def test_jobs_keep_to_the_gpus_that_may_be_used(monkeypatch, named, numbers):
    tool = load_tool(monkeypatch, TOOL, 'grid.py')
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: 0)
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
    if named is not None:
        monkeypatch.setenv('CUDA_VISIBLE_DEVICES', named)
    assert tool['visible_gpus']() == numbers


def test_gpus_that_submitit_cannot_take(monkeypatch):
    tool = load_tool(monkeypatch, TOOL, 'grid.py')
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', 'GPU-1f')
    with pytest.raises(ValueError, match='name GPUs by numbers'):
        tool['visible_gpus']()


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, TOOL, 'grid.py', '--threads', '1', *arguments],
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def cells_of(root):
    return {path.stem: json.loads(path.read_text()) for path in results(root)}


def results(root):
    return sorted(root.glob('*.json'))


def kill_a_job(root):
    """Kill the process of a job once it trains."""
    while not list(root.glob('*/work_dir/*/*.log')):
        time.sleep(0.1)
    (submitted, *_) = root.glob('jobs/*_submitted.pkl')
    controller = submitted.name.partition('_')[0]
    children = f'/proc/{controller}/task/{controller}/children'
    with open(children) as file:
        os.kill(int(file.read().split()[0]), signal.SIGKILL)


@pytest.mark.slow
def test_two_sweeps_over_one_folder_and_a_killed_job(folder, monkeypatch):
    root = folder / 'work_dirs' / 'sweeps' / 'grid'
    sweeps = [start('--jobs', '1')]
    kill_a_job(root)
    sweeps.append(start('--jobs', '2'))
    outputs = [sweep.communicate(timeout=500)[0] for sweep in sweeps]
    assert [sweep.returncode for sweep in sweeps] == [0, 0], outputs
    assert all('4 of 4 cells are done' in output for output in outputs)
    runs = [path for path in root.glob('*/work_dir/*') if path.is_dir()]
    assert len(runs) == 4 + 1  # and the killed one
    found = cells_of(root)
    assert len(found) == 4
    assert {cell['cell']['clca'] for cell in found.values()} == {
        'base',
        'clca',
    }

    # again: nothing runs
    before = {path: path.stat().st_mtime_ns for path in results(root)}
    assert start().wait() == 0
    assert before == {p: p.stat().st_mtime_ns for p in results(root)}

    run_tool(monkeypatch, TOOL, 'grid.py', '--report')
    table = (root / 'report' / 'summary.md').read_text()
    assert '(2)' in table and 'vit-mini-p14' in table

    # a bad result is set aside and made anew; other settings are refused
    results(root)[0].write_text('{')
    output = start().communicate()[0]
    assert '4 of 4 cells are done' in output
    assert len(cells_of(root)) == 4
    assert len(list(root.glob('*.bad-1'))) == 1
    changed = GRID.replace("max_epochs': 1", "max_epochs': 2")
    (folder / 'grid.py').write_text(changed)
    output = start().communicate()[0]
    assert '4 of the results' in output and 'other settings' in output


@pytest.mark.slow
def test_a_cell_that_fails_is_listed_with_its_log(folder):
    text = GRID.replace("['base', 'clca']", "['clca']")
    # BatchNorm in the head refuses a batch of one, in training alone
    text = text.replace("batch_size': 4", "batch_size': 1")
    (folder / 'grid.py').write_text(text.replace('[1, 2]', '[1]'))
    sweep = start()
    output = sweep.communicate(timeout=500)[0]
    assert sweep.returncode == 1
    assert 'failed twice:' in output
    assert 'Expected more than 1 value per channel' in output
    assert '0 of 1 cells are done' in output
