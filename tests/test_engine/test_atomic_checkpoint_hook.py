# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Checkpoint writes with injected failures at every step."""

import resource
import shutil
from itertools import count
from pathlib import Path
from uuid import uuid4

import mmengine
import pytest
import torch
from full_disk import file_size_limit
from mmengine.config import Config
from mmengine.evaluator import BaseMetric
from mmengine.fileio import LocalBackend, get_file_backend
from mmengine.hooks import CheckpointHook
from mmengine.model import BaseModel
from mmengine.registry import METRICS, MODELS
from mmengine.runner import Runner
from torch import nn

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.resuming import newest_checkpoint, resume
from mmclca.engine.runner import build_runner, use_atomic_checkpoints
from mmclca.utils import files
from mmclca.utils.files import atomic_backend

PLAIN = dict(type='CheckpointHook', interval=1, max_keep_ckpts=1)
BEST = dict(PLAIN, save_best='score', rule='greater')
SCORES = range(1, 9)


class Killed(BaseException):
    """Simulates a killed process."""


@MODELS.register_module()
class Weights(BaseModel):
    """Model with 400 kB of weights."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(100, 1000)

    def forward(self, inputs, mode):
        out = self.fc(inputs).mean()
        return dict(loss=out) if mode == 'loss' else [out]


@METRICS.register_module()
class Rising(BaseMetric):
    """Metric with given scores, by default rising per epoch."""

    default_prefix = None

    def process(self, data_batch, data_samples):
        self.results.append(0)

    def compute_metrics(self, results):
        Rising.epoch += 1
        score = Rising.scores[Rising.epoch - 1]
        return dict(score=score, loss=-score)


@pytest.fixture
def train(tmp_path):
    """Train with a checkpoint hook; return the runner."""

    def train(hook=PLAIN, work_dir=tmp_path / 'work', epochs=3, scores=SCORES):
        loader = dict(
            dataset=[dict(inputs=torch.ones(100))] * 2,
            sampler=dict(type='DefaultSampler', shuffle=False),
            batch_size=1,
            collate_fn=dict(type='default_collate'),
        )
        cfg = Config(
            dict(
                model=dict(type='Weights'),
                work_dir=str(work_dir),
                experiment_name=uuid4().hex,  # key of the message hub
                train_dataloader=loader,
                train_cfg=dict(by_epoch=True, max_epochs=epochs),
                optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
                val_dataloader=loader,
                val_cfg={},
                val_evaluator=dict(type='Rising'),
                default_hooks=dict(checkpoint=dict(hook)),
                log_level='WARNING',
            )
        )
        resume(cfg, 'auto')
        _, iters = newest_checkpoint(work_dir)
        Rising.epoch, Rising.scores = iters // 2, scores
        runner = build_runner(cfg)
        runner.train()
        return runner

    return train


def names(work_dir):
    return sorted(path.name for path in work_dir.rglob('*.pth'))


def check_last(work_dir):
    """Check that ``last_checkpoint`` names a valid file; return its name."""
    last = Path((work_dir / 'last_checkpoint').read_text())
    assert 'state_dict' in torch.load(last, weights_only=False)
    return last.name


@pytest.fixture
def full_disk(monkeypatch):
    """Make writes of a given checkpoint fail half way."""
    save = Runner.save_checkpoint

    def full_disk(name):
        def fail(self, out_dir, filename, *arguments, **keywords):
            size = 200_000 if filename == name else resource.RLIM_INFINITY
            with file_size_limit(size):
                save(self, out_dir, filename, *arguments, **keywords)

        monkeypatch.setattr(Runner, 'save_checkpoint', fail)

    return full_disk


def test_hook_keeps_best_last_and_published_checkpoints(train, tmp_path):
    two = dict(save_best=['score', 'loss'], rule=['greater', 'less'])
    published = ['state_dict', 'meta']
    runner = train(dict(PLAIN, **two, published_keys=published))
    work_dir = tmp_path / 'work'
    *_, last = found = names(work_dir)
    hashed = [name for name in found if '-' in name]
    assert [name.partition('-')[0] for name in hashed] == [
        *('best_loss_epoch_3', 'best_score_epoch_3', 'epoch_3')
    ]
    assert [name for name in found if name not in hashed] == [
        *('best_loss_epoch_3.pth', 'best_score_epoch_3.pth', 'epoch_3.pth')
    ]
    kept = torch.load(work_dir / hashed[-1], weights_only=False)
    assert {*kept} == {*published}
    assert check_last(work_dir) == last
    assert not list(work_dir.glob('.*'))
    assert runner.message_hub.get_info('keep_ckpt_ids') == [3]


@pytest.mark.parametrize(
    'full, kept',
    [
        ('epoch_3.pth', ['best_score_epoch_2.pth', 'epoch_2.pth']),
        ('best_score_epoch_3.pth', ['best_score_epoch_2.pth', 'epoch_3.pth']),
    ],
)
def test_run_ends_and_resumes_if_disk_is_full(
    train, full_disk, tmp_path, full, kept
):
    work_dir = tmp_path / 'work'
    full_disk(full)
    with pytest.raises(CheckpointError) as error:
        train(BEST)
    message = str(error.value)
    assert f'{full}: File too large (' in message and '`resume`' in message
    assert names(work_dir) == kept
    assert check_last(work_dir) == kept[-1]
    full_disk(None)
    train(BEST, epochs=4)
    assert names(work_dir) == ['best_score_epoch_4.pth', 'epoch_4.pth']


def test_hook_uses_the_backend_of_the_user_if_one_is_given(train, tmp_path):
    runner = train(dict(PLAIN, backend_args=dict(backend='local')), epochs=1)
    (hook,) = (h for h in runner.hooks if isinstance(h, CheckpointHook))
    assert hook.backend_args == dict(backend='local')
    client = dict(file_client_args=dict(backend='disk'))
    with pytest.warns(DeprecationWarning):
        train(dict(PLAIN, **client, filename_tmpl='ckpt-{}.pth'), epochs=3)
    assert names(tmp_path / 'work') == ['ckpt-3.pth', 'epoch_1.pth']


def test_resume_finds_newest_valid_best_checkpoint(train, tmp_path):
    work_dir = tmp_path / 'work'
    train(BEST)
    best, last = work_dir / 'best_score_epoch_3.pth', work_dir / 'epoch_3.pth'
    damaged = work_dir / 'best_other_epoch_3.pth'
    damaged.write_bytes(best.read_bytes()[:100])
    for file in (last, best, damaged):
        file.touch()
    hub = train(BEST, epochs=4).message_hub
    assert hub.get_info('best_ckpt').endswith('best_score_epoch_4.pth')
    assert damaged.exists() and not best.exists()


@pytest.mark.parametrize('key', ['superseded', 'best_ckpt'])
def test_resume_removes_no_file_if_checkpoint_names_it(train, tmp_path, key):
    thesis = tmp_path / 'thesis.pth'
    notes = tmp_path / 'work/notes.txt'
    train(BEST)
    for path in (thesis, notes):
        path.touch()
    last = tmp_path / 'work/epoch_3.pth'
    checkpoint = torch.load(last, weights_only=False)
    info = checkpoint['message_hub']['runtime_info']
    info[key] = ['../thesis.pth', str(thesis), 'notes.txt']
    if key == 'best_ckpt':
        info.update(best_ckpt=str(notes), best_score=-1)
    torch.save(checkpoint, last)
    train(BEST, epochs=4)
    assert thesis.exists() and notes.exists()


def test_import_leaves_the_local_backend_of_mmengine_alone():
    assert type(get_file_backend('model.pth')) is LocalBackend


@pytest.mark.parametrize('name', ['of_test.json', 'of_test.pkl'])
def test_results_are_kept_if_new_ones_cannot_be_written(name, tmp_path):
    path = tmp_path / name
    with atomic_backend():
        mmengine.dump([1], path)
        full = file_size_limit(8)
        with full, pytest.raises(OSError, match='File too large'):
            mmengine.dump([*range(99)], path)
    assert mmengine.load(path) == [1]
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    'scores, best', [((5, 9, 9, 7), 3), ((9, 5, 5, 5), 1), ((1, 1, 1, 1), 4)]
)
def test_last_best_is_kept_if_scores_are_equal(train, tmp_path, scores, best):
    last_best = dict(BEST, type='mmclca.engine.hooks.AtomicCheckpointHook')
    last_best['keep_last_best'] = True
    train(last_best, epochs=4, scores=scores)
    assert names(tmp_path / 'work')[0] == f'best_score_epoch_{best}.pth'


def test_last_checkpoint_is_updated_before_old_file_is_removed(
    train, monkeypatch, tmp_path
):
    def look(self, path):
        found.append(check_last(tmp_path / 'work'))
        remove(self, path)

    remove, found = LocalBackend.remove, []
    monkeypatch.setattr(LocalBackend, 'remove', look)
    train()
    assert found == ['epoch_2.pth', 'epoch_3.pth']


@pytest.fixture
def killed_at(monkeypatch):
    """Kill before the n-th rename or removal."""
    replace, remove = files.os.replace, LocalBackend.remove

    def killed_at(number):
        steps = count()

        def step(act, *paths):
            if next(steps) != number:
                return act(*paths)
            if act is replace:  # leave a partial file, as a kill does
                shutil.copy(paths[0], paths[0].with_stem('.left.' + 'f' * 32))
            raise Killed

        monkeypatch.setattr(
            files.os, 'replace', lambda *paths: step(replace, *paths)
        )
        monkeypatch.setattr(
            LocalBackend, 'remove', lambda *paths: step(remove, *paths)
        )

    return killed_at


@pytest.mark.slow
def test_run_resumes_if_killed_at_any_step(train, killed_at, tmp_path):
    for number in count():
        work_dir = tmp_path / str(number)
        killed_at(number)
        try:
            train(BEST, work_dir)
        except Killed:
            pass
        else:
            break
        if (work_dir / 'last_checkpoint').exists():
            check_last(work_dir)
        if number > 2:
            assert newest_checkpoint(work_dir)[0]
        killed_at(None)
        train(BEST, work_dir, 4)
        assert check_last(work_dir) == 'epoch_4.pth'
        assert names(work_dir) == ['best_score_epoch_4.pth', 'epoch_4.pth']
        assert not list(work_dir.glob('.*'))
    assert number == 1 + 3 * 3 + 2 * 2  # config, writes and removals


@pytest.mark.parametrize(
    'given',
    [
        {},
        dict(default_hooks=None),
        dict(default_hooks=dict(checkpoint=dict(type='CheckpointHook'))),
        dict(default_hooks=dict(saving=dict(type=CheckpointHook))),
        dict(custom_hooks=[dict(type='mmpretrain.CheckpointHook')]),
        dict(custom_hooks=[dict(type='mmengine.hooks.CheckpointHook')]),
    ],
)
def test_plain_checkpoint_hooks_become_atomic(given):
    cfg = Config(given)
    use_atomic_checkpoints(cfg)
    hooks = [*cfg.default_hooks.values(), *cfg.get('custom_hooks', [])]
    assert {hook.type.rpartition('.')[2] for hook in hooks} == {
        'AtomicCheckpointHook'
    }


def test_other_hooks_are_unchanged():
    hooks = dict(timer=dict(type='IterTimerHook'), checkpoint=None)
    cfg = Config(dict(default_hooks=hooks))
    use_atomic_checkpoints(cfg)
    assert cfg.default_hooks == hooks
