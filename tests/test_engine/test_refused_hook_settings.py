# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Refused settings of hooks and schedulers."""

import pytest

from mmclca.registry import HOOKS, PARAM_SCHEDULERS

SCHEDULER = dict(type='mmclca.WarmupCosineLR', optimizer=None, T_max=45)
SCHEDULE = dict(type='mmclca.KeepRateScheduleHook', epochs=2)

CHECKPOINT = dict(type='mmclca.AtomicCheckpointHook')


@pytest.mark.parametrize(
    'registry, config, name, value',
    [
        (PARAM_SCHEDULERS, SCHEDULER, 'start_factor', 1.5),
        (PARAM_SCHEDULERS, SCHEDULER, 'eta_min_ratio', -1),
        (PARAM_SCHEDULERS, SCHEDULER, 'warmup', 45),
        (PARAM_SCHEDULERS, SCHEDULER, 'warmup', -1),
        (HOOKS, SCHEDULE, 'epochs', 0),
        (HOOKS, SCHEDULE, 'start', -1),
        (HOOKS, CHECKPOINT, 'interval', 'x'),
        (HOOKS, CHECKPOINT, 'interval', 1.5),
        (HOOKS, CHECKPOINT, 'max_keep_ckpts', True),
        (HOOKS, CHECKPOINT, 'save_begin', -1),
        (HOOKS, CHECKPOINT, 'filename_tmpl', 'epoch.pth'),
        (HOOKS, dict(type='mmclca.CompileHook'), 'mode', 'max'),
        (HOOKS, dict(type='mmclca.ProbeInitHook'), 'classifier', 'rigde'),
        (HOOKS, dict(type='mmclca.ReconstructionHook'), 'interval', 0),
        (HOOKS, dict(type='mmclca.ReconstructionHook'), 'num_images', 0),
        (HOOKS, dict(type='mmclca.TokenVisualizationHook'), 'interval', 0),
        (HOOKS, dict(type='mmclca.TuningScopeHook'), 'scope', 'atn'),
    ],
)
def test_engine_setting_is_refused(registry, config, name, value):
    with pytest.raises(ValueError, match=name):
        registry.build(config | {name: value})
