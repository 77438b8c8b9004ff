# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from math import cos, pi
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner
from small_models import classifier, vit
from tiny_run import write_run

from mmclca.engine.hooks.keep_rate_warm_up_hook import warm_up
from mmclca.registry import HOOKS, MODELS


@HOOKS.register_module()
class NoteKeepRates(Hook):
    """Records the keep rates in training and in validation."""

    priority = 'LOWEST'

    def __init__(self):
        self.train, self.val = [], []

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.train.append(runner.model.backbone.reducer.keep_rates)

    def before_val_iter(self, runner, batch_idx, data_batch=None):
        self.val.append(runner.model.backbone.reducer.keep_rates)


@pytest.fixture
def run(tmp_path):
    """Train the tiny config with the hook; return runner and records."""
    path = write_run(tmp_path)

    def run(reducer='EViT', backbone=None, max_epochs=5, **options):
        config = Config.fromfile(path)
        config.work_dir = str(tmp_path / 'work')
        config.model.backbone.reducer.type = f'mmclca.{reducer}'
        config.model.backbone = backbone or config.model.backbone
        config.train_cfg.max_epochs = max_epochs
        config.custom_hooks = [
            dict(type='mmclca.KeepRateWarmUpHook', **options),
            dict(type='mmclca.NoteKeepRates'),
        ]
        runner = Runner.from_cfg(config)
        runner.train()
        notes = next(h for h in runner.hooks if isinstance(h, NoteKeepRates))
        return runner, notes

    return run


def test_keep_rate_follows_a_cosine_and_validation_uses_the_last(run):
    runner, notes = run('TopK', epochs=3, start=1)
    assert len(runner.train_dataloader) == 4
    expected = [1.0] * 4  # the first epoch
    expected += [0.5 + 0.25 * (1 + cos(pi * i / 12)) for i in range(12)]
    expected += [0.5] * 4
    seen = torch.tensor(notes.train)[:, 0]
    assert torch.allclose(seen, torch.tensor(expected))
    assert notes.val and set(notes.val) == {(0.5,)}
    assert runner.model.backbone.reducer.keep_rates == (0.5,)


def test_warm_up_ends_at_configured_rate_after_an_interrupt(run):
    runner, _ = run(epochs=3)
    reducer = runner.model.backbone.reducer
    reducer.keep_rates = (0.9,)  # as after an interrupt
    hook = HOOKS.build(dict(type='mmclca.KeepRateWarmUpHook', epochs=3))
    hook.before_train(runner)
    hook.before_val(runner)
    assert reducer.keep_rates == (0.5,)


def test_warm_up_computes_a_cosine():
    assert warm_up(0.2, epoch=-1, epochs=10) == 1
    assert warm_up(0.2, epoch=0, epochs=10) == 1
    assert warm_up(0.2, epoch=5, epochs=10) == pytest.approx(0.6)
    assert warm_up(0.2, epoch=10, epochs=10) == pytest.approx(0.2)
    assert warm_up(0.2, epoch=11, epochs=10) == pytest.approx(0.2)
    rates = [warm_up(0.2, epoch / 8, 10) for epoch in range(81)]
    assert rates == sorted(rates, reverse=True)


def test_models_without_a_keep_rate_are_refused(run):
    with pytest.raises(ValueError, match='ToMe'):
        run('ToMe', epochs=2)
    plain = dict(type='VisionTransformer', arch='deit-t', img_size=32)
    with pytest.raises(ValueError, match='VisionTransformer'):
        run(backbone=plain, epochs=2)
    reducer = dict(type='mmclca.EViT', num_tokens=[8])
    model = MODELS.build(classifier(vit(2, reducer=reducer, reduce_at=(0,))))
    hook = HOOKS.build(dict(type='mmclca.KeepRateWarmUpHook', epochs=3))
    with pytest.raises(ValueError, match='num_tokens'):
        hook.before_train(SimpleNamespace(model=model))
