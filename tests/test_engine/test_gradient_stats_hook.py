# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Logged values of GradientStatsHook, computed by hand."""

import math
from types import SimpleNamespace

import pytest
import torch
from tiny_run import train_with_hooks
from torch import nn

from mmclca.engine.hooks import GradientStatsHook


@pytest.fixture
def runner():
    """Runner with the attributes used by the hook; ``logged`` is a dict."""
    model = nn.ModuleDict(
        dict(
            backbone=nn.Linear(2, 2),
            head=nn.Linear(2, 1, bias=False),
            headless=nn.Linear(1, 1, bias=False),
        )
    )
    model.backbone.weight.grad = torch.tensor([[1.0, -4.0], [0.5, 0.0]])
    model.backbone.bias.grad = torch.tensor([2.0, -1.0])
    model.head.weight.grad = torch.tensor([[-3.0, 1.0]])
    model.headless.weight.grad = torch.tensor([[7.0]])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    logged = {}
    return SimpleNamespace(
        model=model,
        optim_wrapper=SimpleNamespace(optimizer=optimizer),
        message_hub=SimpleNamespace(update_scalar=logged.__setitem__),
        logged=logged,
    )


def step(runner, hook):
    runner.optim_wrapper.optimizer.step()
    hook.after_train_iter(runner, 0)


def test_logged_values_by_hand(runner):
    hook = GradientStatsHook()
    hook.before_train(runner)
    hook.after_train_iter(runner, 0)  # an accumulation step
    assert not runner.logged
    step(runner, hook)
    largest = [4.0, 2.0, 3.0, 7.0]
    squares = 1 + 16 + 0.25 + 4 + 1 + 9 + 1 + 49
    spread = math.sqrt(sum((x - 4) ** 2 for x in largest) / 4)
    assert runner.logged == pytest.approx(
        {
            'train/grad_max': 7.0,
            'train/grad_max_mean': 4.0,
            'train/grad_max_std': spread,
            'train/grad_norm_all': math.sqrt(squares),
            'train/grad_max_backbone': 4.0,
            'train/grad_max_head': 3.0,
            'train/grad_norm_backbone': math.sqrt(22.25),
            'train/grad_norm_head': math.sqrt(10),
        }
    )
    runner.logged.clear()
    hook.after_train_iter(runner, 1)  # an accumulation step
    assert not runner.logged
    runner.model.head.weight.grad = None
    step(runner, hook)
    assert runner.logged.pop('train/grad_max') == 7.0
    assert 'train/grad_max_head' not in runner.logged
    hook.after_train(runner)
    step(runner, hook)
    assert 'train/grad_max' not in runner.logged


@pytest.mark.parametrize('overflow', [0.0, 1.0])
def test_logged_values_are_unscaled_or_skipped_if_amp(runner, overflow):
    """A fused optimizer receives scaled gradients with their scale."""
    optimizer = torch.optim.SGD(runner.model.parameters(), 0.1, fused=True)
    runner.optim_wrapper.optimizer = optimizer
    hook = GradientStatsHook(parts=['head'])
    hook.before_train(runner)
    optimizer.grad_scale = torch.tensor(4.0)
    optimizer.found_inf = torch.tensor(overflow)
    step(runner, hook)
    if overflow:
        assert not runner.logged
        return
    assert runner.logged['train/grad_max'] == 7 / 4
    assert runner.logged['train/grad_max_head'] == 3 / 4
    assert 'train/grad_max_backbone' not in runner.logged


def test_epoch_maxima_are_logged(runner):
    hook = GradientStatsHook()
    hook.before_train(runner)
    for value in (8.0, 9.0, 2.0):
        runner.model.backbone.bias.grad = torch.tensor([value, 0.0])
        step(runner, hook)
    hook.after_train_epoch(runner)
    found = {k: v for k, v in runner.logged.items() if 'epoch' in k}
    assert found == {
        'epoch/grad_max': 9.0,
        'epoch/grad_max_backbone': 9.0,
        'epoch/grad_max_head': 3.0,
    }
    hook.after_train_epoch(runner)
    assert math.isnan(runner.logged['epoch/grad_max'])


def test_part_is_refused_if_parameters_are_missing(runner):
    runner.model.headless.requires_grad_(False)
    with pytest.raises(ValueError, match='neck'):
        GradientStatsHook(parts=('neck', 'head')).before_train(runner)


def test_visualizers_receive_clipped_and_accumulated_gradients(tmp_path):
    runner, lines = train_with_hooks(
        tmp_path,
        dict(type='mmclca.GradientStatsHook'),
        clip_grad=dict(max_norm=0.5),
        accumulative_counts=2,
    )
    assert len(lines) == 8
    (values, _) = runner.message_hub.get_scalar('train/grad_norm_all').data
    # eight iterations, two per step
    assert values == pytest.approx([0.5] * 4, abs=1e-4)
    assert lines[-1]['grad_norm_all'] == pytest.approx(0.5, abs=1e-4)
    assert 0 < lines[-1]['grad_max_head'] <= lines[-1]['grad_max'] <= 0.5
