# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import OptimWrapper
from tiny_run import ROOT
from torch import nn

from mmclca.engine.runner import use_amp
from mmclca.registry import OPTIM_WRAPPERS, PARAM_SCHEDULERS

SCHEDULE = ROOT / 'configs/_base_/schedules/clca_50e.py'
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
    """Learning rates per parameter group and step."""
    rates = []
    for _ in range(num_steps):
        rates.append([group['lr'] for group in optim_wrapper.param_groups])
        optim_wrapper.step()
        scheduler.step()
    return torch.tensor(rates, dtype=torch.float64).T


def near(rates, expected):
    expected = torch.tensor(expected, dtype=torch.float64)
    return (rates - expected).abs().max() < 1e-12


def test_rates_equal_authors_code_for_all_epochs_and_groups():
    shares = (1, 0.65**7, 30)
    optim_wrapper = optimizer(*(1e-4 * share for share in shares))
    found = run(build(optim_wrapper), optim_wrapper, 50)
    for rates, share in zip(found, shares, strict=False):
        assert near(rates / share, RATES)


@pytest.mark.parametrize('stop', [1, 30])
def test_rates_continue_if_training_is_resumed(stop):
    first, second = optimizer(1e-4), optimizer(1e-4)
    scheduler, resumed = build(first), build(second)
    run(scheduler, first, stop)
    second.load_state_dict(first.state_dict())
    resumed.load_state_dict(scheduler.state_dict())
    assert near(run(resumed, second, 50 - stop)[0], RATES[stop:])


def test_rates_interpolate_if_updated_per_iteration():
    optim_wrapper = optimizer(1e-4)
    scheduler = build(
        optim_wrapper, convert_to_iter_based=True, epoch_length=4, end=50
    )
    assert not scheduler.by_epoch
    (rates,) = run(scheduler, optim_wrapper, 200)
    assert near(rates[::4], RATES)
    assert rates[4] < rates[5] < rates[6] < rates[7]


def test_rates_start_at_base_rate_without_warm_up():
    optim_wrapper = optimizer(0.5)
    (rates,) = run(build(optim_wrapper, warmup=0), optim_wrapper, 2)
    assert rates[0] == 0.5 > rates[1]


def test_bf16_wrapper_computes_in_bfloat16_and_updates_float32():
    net, x = nn.Linear(4, 2), torch.randn(3, 4)
    before = net.weight.detach().clone()
    wrapper = OPTIM_WRAPPERS.build(
        dict(
            type='mmclca.BF16OptimWrapper',
            optimizer=torch.optim.SGD(net.parameters(), lr=0.1),
        )
    )
    with wrapper.optim_context(net):
        out = net(x)
    assert out.dtype == torch.bfloat16
    wrapper.update_params(out.float().square().mean())
    assert net(x).dtype == net.weight.dtype == torch.float32
    assert not torch.equal(net.weight, before)


def test_half_precision_on_a_cpu_names_bf16(monkeypatch):
    monkeypatch.setattr('mmclca.engine.runner.get_device', lambda: 'cpu')
    cfg = Config(dict(optim_wrapper=dict(type='OptimWrapper')))
    with pytest.raises(ValueError, match='bf16'):
        use_amp(cfg)
    use_amp(cfg, 'bf16')
    assert cfg.optim_wrapper.type == 'mmclca.BF16OptimWrapper'
