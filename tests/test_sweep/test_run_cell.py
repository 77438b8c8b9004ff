# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Running cells: one for real, and many by processes of which some die."""

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
from mmengine.config import Config
from mmengine.runner import Runner
from submitit.helpers import DelayedSubmission
from sweep_results import CELL, result_of
from tiny_run import write_run

from mmclca.checkpoints.resuming import newest_checkpoint
from mmclca.sweep import run
from mmclca.sweep.claim import claim, is_claimed
from mmclca.sweep.identity import config_hash
from mmclca.sweep.run import DONE, TAKEN, run_cell
from mmclca.utils.atomic_write import replace_text

DIGEST = '0123456789abcdef'
CELLS = [replace(CELL, seed=seed) for seed in range(12)]


def write_tiny(tmp_path, epochs=2, lr=0.001):
    """A sweep with a tiny config of CELL: its folder and the config's hash."""
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
    root, digest = tmp_path / 'sweep', config_hash(cfg)
    replace_text(root / CELL.name / digest / 'config.py', cfg.pretty_text)
    return root, digest


def run_tiny(root, digest, keep_checkpoints=False):
    """Run CELL; return its result."""
    assert run_cell(CELL, root, digest, 0, 1, keep_checkpoints) == DONE
    return json.loads((root / f'{CELL.name}.json').read_text())


def test_one_cell_for_real(tmp_path):
    root, digest = write_tiny(tmp_path)
    path, folder = root / f'{CELL.name}.json', root / CELL.name / digest
    path.write_text('{"cell": ')
    with pytest.warns(UserWarning, match='counts as not run'):
        result = run_tiny(root, digest)
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
    assert run_tiny(root, digest) == result
    assert path.stat().st_mtime_ns == before
    with pytest.raises(ValueError, match='is of other settings'):
        run_cell(CELL, root, '0' * 16, 0, 1, False)


@pytest.fixture
def interrupt(monkeypatch):
    """Stop training once, when it saves the second time; returns the epochs
    that were saved."""
    save, saved = Runner.save_checkpoint, []

    def stop(self, *arguments, **keywords):
        saved.append(self.epoch)
        save(self, *arguments, **keywords)
        if len(saved) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Runner, 'save_checkpoint', stop)
    return saved


def stop_tiny(root, digest):
    with pytest.raises(KeyboardInterrupt):
        run_cell(CELL, root, digest, 0, 1, True)
    assert not (root / f'{CELL.name}.json').exists()
    assert not is_claimed(root / CELL.name)


def test_an_interrupted_cell_goes_on(tmp_path, interrupt):
    root, digest = write_tiny(tmp_path, epochs=4)
    stop_tiny(root, digest)
    work_dir = root / CELL.name / digest / 'work_dir'
    note = work_dir / 'started.txt'
    started = datetime.fromisoformat(note.read_text()) - timedelta(hours=1)
    note.write_text(started.isoformat())
    result = run_tiny(root, digest, keep_checkpoints=True)
    assert interrupt == [0, 1, 2, 3]
    assert len(result['gradients']['per_epoch']) == 4
    assert (work_dir / 'epoch_4.pth').exists()
    assert result['started'] == started.isoformat(timespec='seconds')
    assert newest_checkpoint(work_dir) == (str(work_dir / 'epoch_4.pth'), 16)


def test_a_half_written_checkpoint_is_passed_over(tmp_path, interrupt):
    root, digest = write_tiny(tmp_path, epochs=3)
    stop_tiny(root, digest)
    work_dir = root / CELL.name / digest / 'work_dir'
    whole = (work_dir / 'epoch_2.pth').read_bytes()
    (work_dir / 'epoch_2.pth').write_bytes(whole[: len(whole) // 2])
    (work_dir / 'last_checkpoint').write_text('/gone/epoch_7.pth')
    assert newest_checkpoint(work_dir)[0].endswith('epoch_1.pth')
    result = run_tiny(root, digest)
    assert interrupt == [0, 1, 1, 2]
    assert len(result['gradients']['per_epoch']) == 3


def test_nothing_to_go_on_from(tmp_path):
    assert newest_checkpoint(tmp_path / 'none') == (None, 0)
    (tmp_path / 'epoch_1.pth').write_text('')
    assert newest_checkpoint(tmp_path) == (None, 0)


def test_other_settings_do_not_go_on_from_it(tmp_path, interrupt):
    stop_tiny(*write_tiny(tmp_path / 'one', epochs=3))
    root, digest = write_tiny(tmp_path / 'two', epochs=3, lr=0.5)
    shutil.copytree(
        tmp_path / 'one' / 'sweep', root, dirs_exist_ok=True
    )  # as if both were of one folder
    assert run_tiny(root, digest)['config_hash'] == digest
    assert interrupt == [0, 1, 0, 1, 2]


def test_a_cell_of_another_process_is_left_to_it(tmp_path, monkeypatch):
    monkeypatch.setattr(run, 'claim', lambda folder: claim(folder, 0.1))
    with claim(tmp_path / CELL.name) as mine:
        assert mine
        assert is_claimed(tmp_path / CELL.name)
        process = get_context('fork').Process(
            target=lambda: os._exit(
                run_cell(CELL, tmp_path, '', 0, 1, False) == TAKEN
            )
        )
        process.start()
        process.join()
    assert process.exitcode == 1
    assert not is_claimed(tmp_path / CELL.name)
    assert not is_claimed(tmp_path / 'never seen')
    assert not (tmp_path / 'never seen').exists()


def test_a_cluster_that_ends_a_job_early_gets_it_again(tmp_path):
    again = run_cell.checkpoint(CELL, tmp_path, '', 0, 1, False)
    assert isinstance(again, DelayedSubmission)
    assert again.function is run_cell
    assert again.args == (CELL, tmp_path, '', 0, 1, False)


def pretend(log, go):
    """A measurement that notes its beginning, waits for a file, and notes
    its end."""

    def measure(cfg, work_dir):
        name = work_dir.parents[1].name
        with open(log, 'a') as file:
            file.write(f'began {name}\n')
        while not go.exists():
            time.sleep(0.001)
        with open(log, 'a') as file:
            file.write(f'ended {name}\n')
        result = result_of(config_hash=DIGEST)
        del result['cell']
        return result

    return measure


def work(root):
    for cell in CELLS:
        run_cell(cell, root, DIGEST, 0, 1, False)


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
        replace_text(root / cell.name / DIGEST / 'config.py', '')
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
