# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import OptimWrapper

from mmclca.registry import PARAM_SCHEDULERS

SCHEDULE = Path(__file__).parents[2] / 'configs/_base_/schedules/clca_50e.py'
(RECIPE,) = Config.fromfile(SCHEDULE).param_scheduler
# rates per epoch in the authors' code, for base rate 1e-4
RATES = [
    1e-6,
    5.05e-5,
    *(1e-5 + 4.5e-5 * (1 + math.cos(math.pi * e / 45)) for e in range(2, 45)),
    *[1e-5] * 5,
]


def optimizer(*rates):
    groups = [dict(params=[torch.zeros(1)], lr=rate) for rate in rates]
    return OptimWrapper(torch.optim.AdamW(groups))


def build(optim_wrapper, **options):
    return PARAM_SCHEDULERS.build(
        dict(RECIPE, **options), default_args=dict(optimizer=optim_wrapper)
    )


def run(scheduler, optim_wrapper, num_steps):
    """Learning rates per step and parameter group."""
    rates = []
    for _ in range(num_steps):
        rates.append([group['lr'] for group in optim_wrapper.param_groups])
        optim_wrapper.step()
        scheduler.step()
    return rates


def near(rates, expected):
    return all(
        abs(a - b) < 1e-12 for a, b in zip(rates, expected, strict=True)
    )


def test_rates_equal_authors_code_for_all_epochs_and_groups():
    optim_wrapper = optimizer(1e-4, 1e-4 * 0.65**7, 3e-3)
    rates = run(build(optim_wrapper), optim_wrapper, 50)
    for group, share in enumerate((1, 0.65**7, 30)):
        expected = [rate * share for rate in RATES]
        assert near([step[group] for step in rates], expected)


@pytest.mark.parametrize('stop', [1, 30])
def test_rates_continue_if_training_is_resumed(stop):
    first = optimizer(1e-4, 2e-5)
    scheduler = build(first)
    run(scheduler, first, stop)
    second = optimizer(1e-4, 2e-5)
    resumed = build(second)
    second.load_state_dict(first.state_dict())
    resumed.load_state_dict(scheduler.state_dict())
    rates = run(resumed, second, 50 - stop)
    assert near([step[0] for step in rates], RATES[stop:])
    assert near([step[1] for step in rates], [r / 5 for r in RATES[stop:]])


def test_rates_interpolate_if_updated_per_iteration():
    optim_wrapper = optimizer(1e-4)
    scheduler = build(
        optim_wrapper, convert_to_iter_based=True, epoch_length=4, end=50
    )
    assert not scheduler.by_epoch
    rates = [rate for (rate,) in run(scheduler, optim_wrapper, 200)]
    whole = [rates[4 * epoch] for epoch in range(50)]
    assert near(whole, RATES)
    assert rates[4] < rates[5] < rates[6] < rates[7]


def test_rates_start_at_base_rate_without_warm_up():
    optim_wrapper = optimizer(0.5)
    rates = run(build(optim_wrapper, warmup=0), optim_wrapper, 2)
    assert rates[0] == [0.5]
    assert rates[1][0] < 0.5
