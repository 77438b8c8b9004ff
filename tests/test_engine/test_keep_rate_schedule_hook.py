# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from math import cos, pi
from types import SimpleNamespace

import pytest
import torch
from mmengine.hooks import Hook
from small_models import vit

from mmclca.engine.hooks.keep_rate_schedule_hook import scheduled_rate
from mmclca.registry import HOOKS, MODELS

SCHEDULE = dict(type='mmclca.KeepRateScheduleHook', epochs=1, start=1)


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


def test_keep_rate_follows_a_cosine_and_validation_uses_the_last(build):
    runner = build(
        SCHEDULE,
        dict(type='mmclca.NoteKeepRates'),
        train_cfg=dict(max_epochs=3),
    )
    runner.train()
    notes = next(h for h in runner.hooks if isinstance(h, NoteKeepRates))
    cosine = [0.5 + 0.25 * (1 + cos(pi * i / 4)) for i in range(4)]
    expected = [1.0] * 4 + cosine + [0.5] * 4
    seen = torch.tensor(notes.train)[:, 0]
    assert torch.allclose(seen, torch.tensor(expected))
    assert notes.val and set(notes.val) == {(0.5,)}
    reducer = runner.model.backbone.reducer
    assert reducer.keep_rates == (0.5,)
    reducer.keep_rates = (0.9,)  # as after an interrupt
    hook = HOOKS.build(SCHEDULE)
    hook.before_train(runner)
    hook.before_val(runner)
    assert reducer.keep_rates == (0.5,)


def test_scheduled_rate_follows_a_cosine():
    found = [scheduled_rate(0.2, epoch, 10) for epoch in (-1, 0, 2, 5, 10, 11)]
    at_two = 0.6 + 0.4 * cos(pi / 5)
    assert found == pytest.approx([1, 1, at_two, 0.6, 0.2, 0.2])


EVIT = dict(type='mmclca.EViT', num_tokens=[8])


@pytest.mark.parametrize(
    'backbone, term',
    [
        (vit(2, reducer=dict(type='mmclca.ToMe'), reduce_at=(0,)), 'ToMe'),
        (vit(2, reducer=EVIT, reduce_at=(0,)), 'num_tokens'),
        (dict(type='LeNet5'), 'LeNet5'),
    ],
)
def test_models_without_a_keep_rate_are_refused(backbone, term):
    model = SimpleNamespace(backbone=MODELS.build(backbone))
    with pytest.raises(ValueError, match=term):
        HOOKS.build(SCHEDULE).before_train(SimpleNamespace(model=model))
