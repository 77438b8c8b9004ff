# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Optimizers: gradient accumulation, fused AdamW and bfloat16."""

from copy import deepcopy

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmpretrain.structures import DataSample
from small_models import CACHE, REDUCE_AT, build, classifier, vit
from tiny_run import ROOT
from torch import nn

from mmclca.registry import OPTIM_WRAPPERS

SCHEDULE = ROOT / 'configs/_base_/schedules/clca_50e.py'
BACKBONE = vit(
    reducer=dict(type='mmclca.EViT', keep_rate=0.5),
    reduce_at=REDUCE_AT,
    cache=CACHE,
)


def train(model, batches, **options):
    """Train on batches with the default optimizer."""
    config = Config.fromfile(SCHEDULE).optim_wrapper
    config.update(options)
    wrapper = build_optim_wrapper(model, config)
    wrapper.initialize_count_status(model, 0, len(batches))
    for inputs, labels in batches:
        samples = [DataSample().set_gt_label(label) for label in labels]
        with wrapper.optim_context(model):
            losses = model(inputs, samples, mode='loss')
        wrapper.update_params(losses['loss'])
    return {name: p.detach() for name, p in model.named_parameters()}


def batch_of_eight():
    """Batch in float64, because AdamW amplifies gradient noise."""
    inputs = torch.randn(8, 3, 32, 32, dtype=torch.float64)
    return inputs, torch.arange(8) % 5


def largest_difference(one, other):
    return max((one[k] - other[k]).abs().max().item() for k in one)


def difference(cla):
    """Largest difference between two batches of 4 and one batch of 8."""
    whole = build(classifier(BACKBONE, cla)).double()
    halves = deepcopy(whole)
    batch = batch_of_eight()
    parts = list(zip(*(part.split(4) for part in batch), strict=True))
    one = train(whole, [batch])
    return largest_difference(one, train(halves, parts, accumulative_counts=2))


@pytest.mark.filterwarnings('ignore:Gradient accumulative')
def test_accumulated_batches_equal_one_batch_without_batch_norm():
    assert difference(cla=False) < 1e-8
    assert difference(cla=True) > 1e-5


def test_fused_adamw_equals_adamw():
    config = Config.fromfile(SCHEDULE).optim_wrapper
    assert config.optimizer.fused
    plain = dict(config.optimizer, fused=False)
    model = build(classifier(BACKBONE)).double()
    copied, batches = deepcopy(model), [batch_of_eight() for _ in range(3)]
    before = {k: v.detach().clone() for k, v in model.named_parameters()}
    fused = train(model, batches)
    assert largest_difference(fused, before) > 1e-4
    plain = train(copied, batches, optimizer=plain)
    assert largest_difference(fused, plain) < 1e-12


def test_bf16_wrapper_computes_in_bfloat16_and_updates_float32():
    torch.manual_seed(0)
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
    assert net.weight.dtype == torch.float32
    assert not torch.equal(net.weight, before)
    assert net(x).dtype == torch.float32
