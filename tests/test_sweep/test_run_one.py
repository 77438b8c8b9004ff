# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tasks: a real one, and parallel ones with a killed process."""

import json
import os
import signal
import time
from copy import deepcopy
from dataclasses import asdict
from datetime import datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from tempfile import mkdtemp

import pytest
from filelock import FileLock
from forked_sweeps import CFG, fork, patch_sweeps
from mmengine.config import Config
from mmengine.runner import Runner
from submitit.helpers import DelayedSubmission
from sweep_results import KEY, make_task
from tiny_run import write_run

from mmclca.checkpoints.resuming import newest_checkpoint
from mmclca.sweep.execution import DONE, LOCK, TAKEN, run_one
from mmclca.sweep.results import config_hash


@pytest.fixture
def cfg(tmp_path, quick_runner):
    """Tiny config for KEY, three epochs."""
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
    """Run KEY and return the result."""
    task = make_task(cfg, root, keep_checkpoints=keep_checkpoints)
    assert run_one(task) == DONE
    return json.loads((root / f'{KEY.name}.json').read_text())


def test_run_resumes_if_interrupted(tmp_path, cfg, interrupt):
    with pytest.raises(KeyboardInterrupt):
        run_tiny(tmp_path, cfg, keep_checkpoints=True)
    assert not (tmp_path / f'{KEY.name}.json').exists()
    work_dir = tmp_path / KEY.name / config_hash(cfg) / 'work_dir'
    note = work_dir / 'started.txt'
    started = datetime.fromisoformat(note.read_text()) - timedelta(hours=1)
    note.write_text(started.isoformat())
    # another run in the same folder starts again
    other = deepcopy(cfg)
    other.optim_wrapper.optimizer.lr = 0.5
    other.train_cfg.max_epochs = 1
    check_result(tmp_path, other, run_tiny(tmp_path, other))
    assert interrupt == [0, 1, 0]
    with pytest.raises(ValueError, match='`work_dir`'):
        run_tiny(tmp_path, cfg)
    (tmp_path / f'{KEY.name}.json').unlink()
    result = run_tiny(tmp_path, cfg, keep_checkpoints=True)
    assert interrupt == [0, 1, 0, 2]
    assert len(result['gradients']['per_epoch']) == 3
    assert result['cpu_seconds'] is None
    assert result['started'] == started.isoformat(timespec='seconds')
    assert newest_checkpoint(work_dir) == (str(work_dir / 'epoch_3.pth'), 12)


def check_result(root, cfg, result):
    """Check the result of a run with one epoch."""
    folder = root / KEY.name / config_hash(cfg)
    assert result['run'] == asdict(KEY)
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
        for path in root.rglob('*'):  # the clock was wrong
            changed = path.stat().st_mtime + random.choice((-5, 5)) * 3600
            os.utime(path, (changed, changed))
        assert result(root) == expected

    expected = result(tmp_path / 'whole')
    attack.run('sweeps: a training killed, then the same result', 12, attempt)


def test_invalid_result_is_replaced_and_valid_one_kept(tmp_path, monkeypatch):
    log = tmp_path / 'log'
    patch_sweeps(monkeypatch, log)
    path = tmp_path / f'{KEY.name}.json'
    path.write_text('{"run": ')
    with pytest.warns(UserWarning, match='is not a result'):
        result = run_tiny(tmp_path, CFG)
    assert run_tiny(tmp_path, CFG) == result
    assert log.read_text() == f'{KEY.name}\n'
    assert (tmp_path / f'{path.name}.bad-1').read_text() == '{"run": '


def test_run_is_skipped_if_another_process_runs_it(tmp_path):
    context = get_context('fork')
    folder = tmp_path / KEY.name
    folder.mkdir()
    with FileLock(folder / LOCK):
        process = context.Process(
            target=lambda: os._exit(
                run_one(make_task(Config(), tmp_path)) == TAKEN
            )
        )
        process.start()
        process.join()
    assert process.exitcode == 1


def test_preempted_job_is_submitted_again(tmp_path):
    task = make_task(Config(), tmp_path)
    again = run_one.checkpoint(task)
    assert isinstance(again, DelayedSubmission)
    assert (again.function, again.args) == (run_one, (task,))
