# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Gradient contributions per token type, by definition and in a run."""

import pytest
from gradient_sources import GradientSourcesHook
from tiny_run import train_with_hooks

from mmclca.registry import HOOKS

QKV = 'backbone.layers.0.attn.qkv'


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
