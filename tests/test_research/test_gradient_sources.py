# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Gradient contributions per token type, by definition and in a run."""

import pytest
import torch
from gradient_sources import GradientSourcesHook, sources
from tiny_run import train_with_hooks

from mmclca.registry import HOOKS

QKV = 'backbone.layers.0.attn.qkv'


@pytest.mark.parametrize('num_clr', [0, 1, 2])
def test_sources_equal_gradients_of_single_token_types(num_clr):
    linear = torch.nn.Linear(3, 4)
    inputs, weights = torch.randn(2, 6, 3), torch.randn(2, 6, 4)
    tokens = dict(cls=[0], clr=range(6 - num_clr, 6))
    tokens['others'] = range(1, 6 - num_clr)
    stats = sources(inputs, weights, num_clr)
    assert ('grad_max_clr' in stats) == bool(num_clr)
    for name in ('cls', 'others') + ('clr',) * bool(num_clr):
        linear.zero_grad()
        some = list(tokens[name])
        (linear(inputs) * weights)[:, some].sum().backward()
        largest = linear.weight.grad.abs().max().item()
        assert stats[f'grad_max_{name}'] == pytest.approx(largest)


def test_sources_find_the_largest_channel():
    inputs, grads = torch.full((1, 4, 3), 0.5), torch.ones(1, 4, 2)
    inputs[0, 3, 1] = -9.0
    stats = sources(inputs, grads, num_clr=1)
    assert stats['grad_channel'] == 1
    assert stats['grad_channel_input'] == stats['grad_max_clr'] == 9.0


def test_logged_contributions_bound_the_gradient(tmp_path):
    assert HOOKS.get('mmclca.GradientSourcesHook') is GradientSourcesHook
    runner, lines = train_with_hooks(
        tmp_path,
        dict(type='mmclca.GradientStatsHook', parts=[f'{QKV}.weight']),
        dict(type='mmclca.GradientSourcesHook', linear=QKV),
    )
    for line in lines:
        shares = [line[f'grad_max_{n}'] for n in ('cls', 'others', 'clr')]
        assert min(shares) > 0
        assert line[f'grad_max_{QKV}.weight'] <= sum(shares) * 1.0001
    (largest, _) = runner.message_hub.get_scalar('epoch/grad_max_clr').data
    assert largest[0] == pytest.approx(
        max(line['grad_max_clr'] for line in lines[:4])
    )
    assert not runner.model.get_submodule(QKV)._forward_hooks
