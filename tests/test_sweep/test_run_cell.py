# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Running cells: one for real, and many by processes of which some die."""

import json
import os
import signal
import time
from collections import Counter
from dataclasses import asdict, replace
from multiprocessing import get_context

import pytest
from mmengine.config import Config
from mmengine.runner import Runner
from submitit.helpers import DelayedSubmission
from sweep_results import CELL, result_of
from tiny_run import write_run

from mmclca.sweep import run
from mmclca.sweep.claim import claim, is_claimed
from mmclca.sweep.identity import config_hash
from mmclca.sweep.run import DONE, TAKEN, run_cell

CELLS = [replace(CELL, seed=seed) for seed in range(12)]


def write_tiny(tmp_path, epochs=2):
    """The folder of a sweep with the config of CELL, a tiny one."""
    cfg = Config.fromfile(write_run(tmp_path))
    cfg.custom_hooks = [dict(type='mmclca.GradientStatsHook')]
    cfg.default_hooks.checkpoint = dict(type='CheckpointHook', interval=1)
    cfg.train_cfg.max_epochs = epochs
    cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    cfg.load_from = None
    cfg.model.data_preprocessor = cfg.data_preprocessor
    root = tmp_path / 'sweep'
    (root / CELL.name).mkdir(parents=True)
    (root / CELL.name / 'config.py').write_text(cfg.pretty_text)
    return root


def test_one_cell_for_real(tmp_path):
    root = write_tiny(tmp_path)
    path, folder = root / f'{CELL.name}.json', root / CELL.name
    path.write_text('{"cell": ')
    cfg = Config.fromfile(folder / 'config.py')
    with pytest.warns(UserWarning, match='counts as not run'):
        done = run_cell(CELL, root, 0, threads=1, keep_checkpoints=False)
    assert done == DONE
    assert (root / f'{path.name}.bad-1').read_text() == '{"cell": '
    result = json.loads(path.read_text())
    assert result['cell'] == asdict(CELL)
    assert result['config_hash'] == config_hash(cfg)
    assert 0 <= result['accuracy'] <= 100
    assert result['params'] > 10000 and result['gmacs'] > 1e-4
    assert result['throughput']['train'] > 0 < result['throughput']['test']
    assert result['peak_memory_mb'] > 100
    assert len(result['gradients']['per_epoch']) == 2
    largest = result['gradients']['max']
    parts = result['gradients']['backbone'], result['gradients']['head']
    assert largest == max(result['gradients']['per_epoch'])
    assert largest == max(max(parts[0]), max(parts[1])) > 0
    assert result['seconds'] > 0 and '+00:00' in result['started']
    assert result['versions']['torch'] and result['machine']
    assert list(folder.glob('work_dir/*/*.log'))
    assert not list(folder.glob('**/*.pth'))
    assert (
        config_hash(Config.fromfile(folder / 'config.py'))
        == (result['config_hash'])
    )

    before = path.stat().st_mtime_ns
    assert run_cell(CELL, root, 0, 1, False) == DONE
    assert path.stat().st_mtime_ns == before


def test_an_interrupted_cell_goes_on(tmp_path, monkeypatch):
    root = write_tiny(tmp_path, epochs=3)
    save, saved = Runner.save_checkpoint, []

    def stop_after_two(self, *arguments, **keywords):
        save(self, *arguments, **keywords)
        saved.append(self.epoch)
        if len(saved) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Runner, 'save_checkpoint', stop_after_two)
    with pytest.raises(KeyboardInterrupt):
        run_cell(CELL, root, 0, 1, True)
    assert not (root / f'{CELL.name}.json').exists()
    assert not is_claimed(root / CELL.name)
    time.sleep(1)  # logs are named by the second
    assert run_cell(CELL, root, 0, 1, keep_checkpoints=True) == DONE
    result = json.loads((root / f'{CELL.name}.json').read_text())
    assert len(result['gradients']['per_epoch']) == 3
    assert saved == [0, 1, 1, 2]
    assert (root / CELL.name / 'work_dir' / 'epoch_3.pth').exists()


def test_a_cell_of_another_process_is_left_to_it(tmp_path, monkeypatch):
    monkeypatch.setattr(run, 'claim', lambda folder: claim(folder, 0.1))
    with claim(tmp_path / CELL.name) as mine:
        assert mine
        assert is_claimed(tmp_path / CELL.name)
        process = get_context('fork').Process(
            target=lambda: os._exit(
                run_cell(CELL, tmp_path, 0, 1, False) == TAKEN
            )
        )
        process.start()
        process.join()
    assert process.exitcode == 1
    assert not is_claimed(tmp_path / CELL.name)
    assert not is_claimed(tmp_path / 'never seen')
    assert not (tmp_path / 'never seen').exists()


def test_a_cluster_that_ends_a_job_early_gets_it_again(tmp_path):
    again = run_cell.checkpoint(CELL, tmp_path, 0, 1, False)
    assert isinstance(again, DelayedSubmission)
    assert again.function is run_cell
    assert again.args == (CELL, tmp_path, 0, 1, False)


def pretend(log, go):
    """A measurement that notes its beginning, waits for a file, and notes
    its end."""

    def measure(cfg, work_dir):
        name = work_dir.parent.name
        with open(log, 'a') as file:
            file.write(f'began {name}\n')
        while not go.exists():
            time.sleep(0.001)
        with open(log, 'a') as file:
            file.write(f'ended {name}\n')
        result = result_of()
        del result['cell']
        return result

    return measure


def work(root):
    for cell in CELLS:
        run_cell(cell, root, 0, 1, False)


def start_workers(root, number):
    context = get_context('fork')
    workers = [
        context.Process(target=work, args=(root,)) for _ in range(number)
    ]
    for worker in workers:
        worker.start()
    return workers


def test_no_cell_runs_twice_and_none_is_lost(tmp_path, monkeypatch):
    """Four processes over one folder, one of them killed at its work."""
    root, log, go = (tmp_path / name for name in ('sweep', 'log', 'go'))
    monkeypatch.setattr(run, 'measure', pretend(log, go))
    monkeypatch.setattr(run, 'claim', lambda folder: claim(folder, 0))
    monkeypatch.setattr(run.torch, 'set_num_threads', lambda _: None)
    for cell in CELLS:
        (root / cell.name).mkdir(parents=True)
        (root / cell.name / 'config.py').write_text('')
    workers = start_workers(root, 4)
    while not log.exists() or len(log.read_text().splitlines()) < 4:
        time.sleep(0.001)
    os.kill(workers[0].pid, signal.SIGKILL)  # all four are at their first
    go.touch()
    for worker in workers:
        worker.join()
    assert workers[0].exitcode == -signal.SIGKILL
    work(root)  # the next sweep finds what the killed one had at hand

    lines = Counter(log.read_text().splitlines())
    began = {cell.name: lines[f'began {cell.name}'] for cell in CELLS}
    ended = {cell.name: lines[f'ended {cell.name}'] for cell in CELLS}
    assert set(ended.values()) == {1}
    assert sorted(began.values()) == [1] * 11 + [2]  # the one at hand
    for cell in CELLS:
        result = json.loads((root / f'{cell.name}.json').read_text())
        assert result['cell'] == asdict(cell)
    assert not list(root.glob('.*')) and not list(root.glob('*.bad-*'))
