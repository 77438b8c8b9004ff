# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The shares of tokens in a gradient, by definition, and where they go."""

from unittest.mock import Mock

import pytest
import torch
from small_models import classifier, vit
from tiny_run import train_with_hooks

from mmclca.engine.hooks import GradientSourcesHook
from mmclca.engine.hooks.gradient_sources_hook import sources
from mmclca.registry import HOOKS, MODELS

QKV = 'backbone.layers.0.attn.qkv'


def test_registered():
    assert HOOKS.get('mmclca.GradientSourcesHook') is GradientSourcesHook


@pytest.mark.parametrize('num_clr', [0, 1, 2])
def test_each_token_alone_is_the_gradient_of_the_weight(num_clr):
    torch.manual_seed(0)
    linear = torch.nn.Linear(3, 4)
    inputs, weights = torch.randn(2, 6, 3), torch.randn(2, 6, 4)
    tokens = dict(cls=[0], clr=range(6 - num_clr, 6), others=[])
    tokens['others'] = range(1, 6 - num_clr)
    stats = sources(inputs, weights, num_clr)
    assert ('grad_max_clr' in stats) == bool(num_clr)
    for name in ('cls', 'others') + ('clr',) * bool(num_clr):
        linear.zero_grad()
        some = list(tokens[name])
        (linear(inputs) * weights)[:, some].sum().backward()
        largest = linear.weight.grad.abs().max().item()
        assert stats[f'grad_max_{name}'] == pytest.approx(largest)


def test_the_channel_of_the_largest():
    inputs, grads = torch.full((1, 4, 3), 0.5), torch.ones(1, 4, 2)
    inputs[0, 3, 1] = -9.0
    stats = sources(inputs, grads, num_clr=1)
    assert stats['grad_channel'] == 1
    assert stats['grad_channel_input'] == 9.0
    assert stats['grad_max_clr'] == 9.0
    assert stats['grad_max_cls'] == 0.5
    assert stats['grad_max_others'] == 1.0


def test_a_pass_that_overflows_has_none():
    hook = GradientSourcesHook()
    for scale, expected in ((1.0, {'grad_max_cls': 2.0}), (torch.inf, None)):
        output = torch.ones(1, 3, 2, requires_grad=True)
        hook._note_pass(None, (torch.ones(1, 3, 2),), output)
        (2 * output * scale).sum().backward()
        stats = hook.stats and {'grad_max_cls': hook.stats['grad_max_cls']}
        assert stats == expected


def test_a_run_logs_shares_that_reach_the_largest(tmp_path):
    runner, lines = train_with_hooks(
        tmp_path,
        dict(type='mmclca.GradientStatsHook', parts=[f'{QKV}.weight']),
        dict(type='mmclca.GradientSourcesHook'),
    )
    assert len(lines) == 8
    for line in lines:
        shares = [line[f'grad_max_{n}'] for n in ('cls', 'others', 'clr')]
        assert min(shares) > 0
        assert line[f'grad_max_{QKV}.weight'] <= sum(shares) * 1.0001
        assert 0 <= line['grad_channel'] < 24
    (largest, _) = runner.message_hub.get_scalar('epoch/grad_max_clr').data
    assert largest[0] == pytest.approx(
        max(line['grad_max_clr'] for line in lines[:4])
    )


def test_after_training_the_layer_is_left_alone(tmp_path):
    hook = dict(type='mmclca.GradientSourcesHook')
    runner, _ = train_with_hooks(tmp_path, hook)
    assert not runner.model.get_submodule(QKV)._forward_hooks


@pytest.mark.parametrize('name', ['backbone.layers.9.attn.qkv', 'backbone'])
def test_a_layer_that_is_not_there(tmp_path, name):
    hook = dict(type='mmclca.GradientSourcesHook', linear=name)
    with pytest.raises(ValueError, match='no linear layer') as error:
        train_with_hooks(tmp_path, hook)
    assert (QKV in str(error.value)) == name.endswith('qkv')


@pytest.mark.parametrize('name', [QKV, QKV.replace('attn', 'branches.1.attn')])
def test_branches_have_no_layer_that_is_used_by_itself(name):
    runner = Mock(model=MODELS.build(classifier(vit(2, branches=2))))
    hook = GradientSourcesHook(name)
    with pytest.raises(ValueError, match='joined in .* It has none'):
        hook.before_train(runner)
