# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""tools/sweep.py in child processes: kills, Ctrl-C, resuming."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from PIL import Image
from tiny_run import ROOT, environment, run_tool

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
    'train_cfg.max_epochs': 3,
    'default_hooks.checkpoint.interval': 1,
    'train_dataloader.num_workers': 0,
    'test_dataloader.num_workers': 0,
    'train_dataloader.batch_size': 4,
}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder with a grid, and leaf40 lists with four gray images."""
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


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, TOOL, 'grid.py', '--threads', '1', *arguments],
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def end_of(sweep):
    return sweep.communicate(timeout=500)[0]


def results(root):
    return sorted(root.glob('*.json'))


def wait_for(root, pattern, number=1):
    """Wait for a number of files; return them."""
    end = time.monotonic() + 200
    while len(found := sorted(root.glob(pattern))) < number:
        assert time.monotonic() < end, f'no {pattern}'
        time.sleep(0.05)
    return found


def kill_a_job(root):
    """Kill the process of the only job."""
    (submitted,) = root.glob('jobs/*/*_submitted.pkl')
    controller = submitted.name.partition('_')[0]
    children = f'/proc/{controller}/task/{controller}/children'
    with open(children) as file:
        os.kill(int(file.read().split()[0]), signal.SIGKILL)


@pytest.mark.slow
def test_sweep_completes_if_killed_twice(folder):
    root = folder / 'work_dirs' / 'sweeps' / 'grid'
    first = start()
    wait_for(root, '*/*/work_dir/last_checkpoint')
    first.kill()
    kill_a_job(root)
    second = start()
    # the run resumes from its checkpoint, and the next run starts
    wait_for(root, '*.json')
    wait_for(root, '*/*/work_dir/*/*.log', 3)
    second.kill()  # its job continues
    third = start('--jobs', '2')
    output = end_of(third)
    all_done = '4 of 4 runs complete' in output
    assert all_done or 'another process' in output, output
    assert third.returncode == 1 - all_done
    wait_for(root, '*.json', 4)
    logs = list(root.glob('*/*/work_dir/*/*.log'))
    assert len(logs) == 4 + 1  # one more for the killed run
    resumed = [log for log in logs if 'resumed epoch' in log.read_text()]
    assert len(resumed) == 1
    runs = [json.loads(path.read_text())['run'] for path in results(root)]
    assert {run['clca'] for run in runs} == {'base', 'clca'}


@pytest.mark.slow
def test_jobs_end_if_sweep_is_interrupted(folder):
    root = folder / 'work_dirs' / 'sweeps' / 'grid'
    sweep = start('--jobs', '1')
    wait_for(root, '*/*/work_dir/last_checkpoint')
    (submitted,) = root.glob('jobs/*/*_submitted.pkl')
    sweep.send_signal(signal.SIGINT)
    *_, last = end_of(sweep).splitlines()
    assert sweep.returncode == 130
    assert last == 'Stopped. Run the same command to resume.'
    wait_for_end(submitted.name.partition('_')[0])


def wait_for_end(pid):
    """Wait until a process has ended."""
    end = time.monotonic() + 60
    while os.path.exists(f'/proc/{pid}'):
        assert time.monotonic() < end, f'{pid} goes on'
        time.sleep(0.05)


@pytest.mark.slow
def test_finished_runs_are_skipped_and_reported(folder, monkeypatch):
    (folder / 'grid.py').write_text(GRID.replace('[1, 2]', '[1]'))
    root = folder / 'work_dirs' / 'sweeps' / 'grid'
    assert '2 of 2 runs complete' in end_of(start('--jobs', '2'))
    before = {path: path.stat().st_mtime_ns for path in results(root)}
    assert '2 of 2 runs complete' in end_of(start())  # all runs are skipped
    assert before == {p: p.stat().st_mtime_ns for p in results(root)}

    run_tool(monkeypatch, TOOL, 'grid.py', '--report')
    table = (root / 'report' / 'summary.md').read_text()
    assert '(1)' in table and 'vit-mini-p14' in table

    # a damaged result is renamed and replaced; changed settings are refused
    results(root)[0].write_text('{')
    assert '2 of 2 runs complete' in end_of(start())
    assert len(list(root.glob('*.bad-1'))) == 1
    text = (folder / 'grid.py').read_text()
    text = text.replace("max_epochs': 3", "max_epochs': 2")
    (folder / 'grid.py').write_text(text)
    output = end_of(start())
    assert '--work-dir' in output
