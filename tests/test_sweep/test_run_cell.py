# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Runs of cells: a real one, and parallel ones with a killed process."""

import json
import os
import signal
import time
from collections import Counter
from copy import deepcopy
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from tempfile import mkdtemp

import pytest
from filelock import FileLock
from forked_sweeps import fork
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


@pytest.fixture
def cfg(tmp_path, quick_runner):
    """Tiny config for CELL, three epochs."""
    cfg = Config.fromfile(write_run(tmp_path))
    cfg.custom_hooks = [dict(type='mmclca.GradientStatsHook')]
    cfg.default_hooks.checkpoint = dict(
        type='CheckpointHook', interval=1, max_keep_ckpts=2
    )
    cfg.train_cfg.max_epochs = 3
    cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    cfg.load_from = None
    cfg.model.data_preprocessor = cfg.data_preprocessor
    return cfg


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


def run_tiny(root, cfg, keep_checkpoints=False):
    """Run CELL and return the result."""
    assert run_cell(CELL, cfg, root, 0, 1, keep_checkpoints) == DONE
    return json.loads((root / f'{CELL.name}.json').read_text())


def test_cell_resumes_if_interrupted(tmp_path, cfg, interrupt):
    with pytest.raises(KeyboardInterrupt):
        run_tiny(tmp_path, cfg, keep_checkpoints=True)
    assert not (tmp_path / f'{CELL.name}.json').exists()
    work_dir = tmp_path / CELL.name / config_hash(cfg) / 'work_dir'
    note = work_dir / 'started.txt'
    started = datetime.fromisoformat(note.read_text()) - timedelta(hours=1)
    note.write_text(started.isoformat())
    # another run in the same folder starts again
    other = deepcopy(cfg)
    other.optim_wrapper.optimizer.lr = 0.5
    other.train_cfg.max_epochs = 1
    check_result(tmp_path, other, run_tiny(tmp_path, other))
    assert interrupt == [0, 1, 0]
    with pytest.raises(ValueError, match='--work-dir'):
        run_tiny(tmp_path, cfg)
    (tmp_path / f'{CELL.name}.json').unlink()
    result = run_tiny(tmp_path, cfg, keep_checkpoints=True)
    assert interrupt == [0, 1, 0, 2]
    assert len(result['gradients']['per_epoch']) == 3
    assert result['cpu_seconds'] is None
    assert result['started'] == started.isoformat(timespec='seconds')
    assert newest_checkpoint(work_dir) == (str(work_dir / 'epoch_3.pth'), 12)


def check_result(root, cfg, result):
    """Check the result of a run with one epoch."""
    folder = root / CELL.name / config_hash(cfg)
    assert result['cell'] == asdict(CELL)
    assert result['config_hash'] == config_hash(cfg)
    assert 0 <= result['accuracy'] <= 100
    assert result['params'] > 10000 and result['gmacs'] > 1e-4
    assert result['throughput']['train'] > 0 < result['throughput']['test']
    assert result['peak_memory_mb'] > 100 and result['cpu_seconds'] > 0
    largest, per_epoch, head, backbone = (
        result['gradients'][name]
        for name in ('max', 'per_epoch', 'head', 'backbone')
    )
    assert [largest] == per_epoch == [max(*head, *backbone)]
    assert result['seconds'] > 0 and '+00:00' in result['started']
    assert {'torch', 'PIL'} <= result['versions'].keys()
    assert result['machine']
    assert list(folder.glob('work_dir/*/*.log'))
    assert not list(folder.glob('**/*.pth'))
    written = Config.fromfile(folder / 'config.py')
    assert config_hash(written) == config_hash(cfg)


@pytest.mark.hostile
def test_killed_training_gives_the_same_result(tmp_path, cfg, attack):
    def result(root):
        names = ('accuracy', 'metrics', 'gradients', 'gmacs', 'params')
        found = run_tiny(root, cfg)
        return {name: found[name] for name in names}

    def attempt(random):
        root = Path(mkdtemp(dir=tmp_path))
        child = fork(lambda: result(root) and None)
        time.sleep(random.uniform(0, 4))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert result(root) == expected

    expected = result(tmp_path / 'whole')
    attack.run('sweeps: a training killed, then the same result', 12, attempt)


def test_invalid_result_is_replaced_and_valid_one_kept(
    tmp_path, cfg, monkeypatch
):
    log = tmp_path / 'log'
    monkeypatch.setattr(run, 'measure_cell', pretend(log, tmp_path))
    path = tmp_path / f'{CELL.name}.json'
    path.write_text('{"cell": ')
    with pytest.warns(UserWarning, match='is not a result'):
        result = run_tiny(tmp_path, cfg)
    assert run_tiny(tmp_path, cfg) == result
    assert log.read_text().count('began') == 1
    assert (tmp_path / f'{path.name}.bad-1').read_text() == '{"cell": '


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
    assert (again.function, again.args) == (run_cell, call)


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


def test_each_cell_completes_once_if_a_process_is_killed(
    tmp_path, monkeypatch
):
    """Four processes share a folder, and one is killed."""
    root, log, go = (tmp_path / name for name in ('sweep', 'log', 'go'))
    monkeypatch.setattr(run, 'measure_cell', pretend(log, go))
    monkeypatch.setattr(run.torch, 'set_num_threads', lambda _: None)
    context = get_context('fork')
    workers = [context.Process(target=work, args=(root,)) for _ in range(4)]
    for worker in workers:
        worker.start()
    while not log.exists() or len(log.read_text().splitlines()) < 4:
        time.sleep(0.001)
    os.kill(workers[0].pid, signal.SIGKILL)  # all run their first cell
    go.touch()
    for worker in workers:
        worker.join()
    assert workers[0].exitcode == -signal.SIGKILL
    work(root)  # the next sweep repeats the interrupted cell

    lines = Counter(log.read_text().splitlines())
    began = [lines[f'began {cell.name}'] for cell in CELLS]
    assert sorted(began) == [1] * 11 + [2]  # the interrupted cell
    for cell in CELLS:
        assert lines[f'ended {cell.name}'] == 1
        result = json.loads((root / f'{cell.name}.json').read_text())
        assert result['cell'] == asdict(cell)
    assert not list(root.glob('.*')) and not list(root.glob('*.bad-*'))
