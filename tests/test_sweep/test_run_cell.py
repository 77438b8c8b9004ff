# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Runs of cells: a real one, and parallel ones with a killed process."""

import json
import os
import shutil
import signal
import time
from collections import Counter
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from multiprocessing import get_context

import pytest
from filelock import FileLock
from mmengine.config import Config
from mmengine.runner import Runner
from submitit.helpers import DelayedSubmission
from sweep_results import CELL, result_of
from tiny_run import write_run

from mmclca.checkpoints.resuming import newest_checkpoint
from mmclca.sweep import run
from mmclca.sweep.results import config_hash
from mmclca.sweep.run import DONE, LOCK, TAKEN, run_cell

CELLS = [replace(CELL, seed=seed) for seed in range(12)]


def write_tiny(tmp_path, epochs=2, lr=0.001):
    """Return a sweep folder and a tiny config for CELL."""
    cfg = Config.fromfile(write_run(tmp_path))
    cfg.custom_hooks = [dict(type='mmclca.GradientStatsHook')]
    cfg.default_hooks.checkpoint = dict(
        type='CheckpointHook', interval=1, max_keep_ckpts=2
    )
    cfg.train_cfg.max_epochs = epochs
    cfg.optim_wrapper.optimizer.lr = lr
    cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    cfg.load_from = None
    cfg.model.data_preprocessor = cfg.data_preprocessor
    return tmp_path / 'sweep', cfg


def run_tiny(root, cfg, keep_checkpoints=False):
    """Run CELL and return the result."""
    assert run_cell(CELL, cfg, root, 0, 1, keep_checkpoints) == DONE
    return json.loads((root / f'{CELL.name}.json').read_text())


def test_cell_is_trained_tested_and_measured_once(tmp_path):
    root, cfg = write_tiny(tmp_path)
    digest = config_hash(cfg)
    path, folder = root / f'{CELL.name}.json', root / CELL.name / digest
    root.mkdir()
    path.write_text('{"cell": ')
    with pytest.warns(UserWarning, match='is not a result'):
        result = run_tiny(root, cfg)
    assert (root / f'{path.name}.bad-1').read_text() == '{"cell": '
    assert result['cell'] == asdict(CELL)
    assert result['config_hash'] == digest
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
    assert {'torch', 'PIL'} <= result['versions'].keys()
    assert result['machine']
    assert list(folder.glob('work_dir/*/*.log'))
    assert not list(folder.glob('**/*.pth'))
    assert config_hash(Config.fromfile(folder / 'config.py')) == digest

    before = path.stat().st_mtime_ns
    assert run_tiny(root, cfg) == result
    assert path.stat().st_mtime_ns == before
    cfg.train_cfg.max_epochs = 9
    with pytest.raises(ValueError, match='--work-dir'):
        run_tiny(root, cfg)


@pytest.fixture
def interrupt(monkeypatch):
    """Interrupt training at the second save; return the saved epochs."""
    save, saved = Runner.save_checkpoint, []

    def stop(self, *arguments, **keywords):
        saved.append(self.epoch)
        save(self, *arguments, **keywords)
        if len(saved) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Runner, 'save_checkpoint', stop)
    return saved


def stop_tiny(root, cfg):
    """Run CELL until the interrupt; return its work dir."""
    with pytest.raises(KeyboardInterrupt):
        run_tiny(root, cfg, keep_checkpoints=True)
    assert not (root / f'{CELL.name}.json').exists()
    return root / CELL.name / config_hash(cfg) / 'work_dir'


def test_cell_resumes_if_interrupted(tmp_path, interrupt):
    root, cfg = write_tiny(tmp_path, epochs=4)
    work_dir = stop_tiny(root, cfg)
    note = work_dir / 'started.txt'
    started = datetime.fromisoformat(note.read_text()) - timedelta(hours=1)
    note.write_text(started.isoformat())
    result = run_tiny(root, cfg, keep_checkpoints=True)
    assert interrupt == [0, 1, 2, 3]
    assert len(result['gradients']['per_epoch']) == 4
    assert (work_dir / 'epoch_4.pth').exists()
    assert result['started'] == started.isoformat(timespec='seconds')
    assert newest_checkpoint(work_dir) == (str(work_dir / 'epoch_4.pth'), 16)


def test_cell_starts_again_if_settings_differ(tmp_path, interrupt):
    stop_tiny(*write_tiny(tmp_path / 'one', epochs=3))
    root, cfg = write_tiny(tmp_path / 'two', epochs=3, lr=0.5)
    shutil.copytree(
        tmp_path / 'one' / 'sweep', root, dirs_exist_ok=True
    )  # both runs in one folder
    assert run_tiny(root, cfg)['config_hash'] == config_hash(cfg)
    assert interrupt == [0, 1, 0, 1, 2]


def test_cell_is_skipped_if_another_process_runs_it(tmp_path):
    context = get_context('fork')
    with FileLock(tmp_path / CELL.name / LOCK):
        process = context.Process(
            target=lambda: os._exit(
                run_cell(CELL, Config(), tmp_path, 0, 1, False) == TAKEN
            )
        )
        process.start()
        process.join()
    assert process.exitcode == 1


def test_preempted_job_is_submitted_again(tmp_path):
    call = CELL, Config(), tmp_path, 0, 1, False
    again = run_cell.checkpoint(*call)
    assert isinstance(again, DelayedSubmission)
    assert again.function is run_cell
    assert again.args == call


def pretend(log, go):
    """Fake measurement that logs its start, waits for a file, and ends."""

    def measure(cfg, work_dir):
        name = work_dir.parents[1].name
        with open(log, 'a') as file:
            file.write(f'began {name}\n')
        while not go.exists():
            time.sleep(0.001)
        with open(log, 'a') as file:
            file.write(f'ended {name}\n')
        result = result_of(config_hash=config_hash(cfg))
        del result['cell']
        return result

    return measure


def work(root):
    for cell in CELLS:
        run_cell(cell, Config(), root, 0, 1, False)


def start_workers(root, number):
    context = get_context('fork')
    workers = [
        context.Process(target=work, args=(root,)) for _ in range(number)
    ]
    for worker in workers:
        worker.start()
    return workers


def test_each_cell_completes_once_if_a_process_is_killed(
    tmp_path, monkeypatch
):
    """Four processes share a folder, and one is killed."""
    root, log, go = (tmp_path / name for name in ('sweep', 'log', 'go'))
    monkeypatch.setattr(run, 'measure_cell', pretend(log, go))
    monkeypatch.setattr(run.torch, 'set_num_threads', lambda _: None)
    workers = start_workers(root, 4)
    while not log.exists() or len(log.read_text().splitlines()) < 4:
        time.sleep(0.001)
    os.kill(workers[0].pid, signal.SIGKILL)  # all run their first cell
    go.touch()
    for worker in workers:
        worker.join()
    assert workers[0].exitcode == -signal.SIGKILL
    work(root)  # the next sweep repeats the interrupted cell

    lines = Counter(log.read_text().splitlines())
    began = {cell.name: lines[f'began {cell.name}'] for cell in CELLS}
    ended = {cell.name: lines[f'ended {cell.name}'] for cell in CELLS}
    assert set(ended.values()) == {1}
    assert sorted(began.values()) == [1] * 11 + [2]  # the interrupted cell
    for cell in CELLS:
        result = json.loads((root / f'{cell.name}.json').read_text())
        assert result['cell'] == asdict(cell)
    assert not list(root.glob('.*')) and not list(root.glob('*.bad-*'))
