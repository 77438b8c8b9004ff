# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Timing test: no reducer falls back to an explicit attention map.

``test_registered_reducers.py`` checks the tensors; the time also reveals
other slow paths.
"""

import pytest
from speed.candidates import REDUCERS, Size, mmpretrain_vit, vary
from toy_reducers import MaskBySoftmax, MaskFromFirstStage

from mmclca.benchmark import Setting, interleaved_seconds
from mmclca.benchmark.steps import make_step
from mmclca.models import Variant
from mmclca.registry import MODELS

pytestmark = pytest.mark.alone
# with many narrow heads, the attention map dominates the time
SIZE = Size('32 x 32 patches', (512, 512), 64, 4, 8, 64)
BOUND = 3.3  # ratio 2.3 for the slowest reducer, 4.9 with maps
SLOW = {toy.__name__: toy for toy in (MaskBySoftmax, MaskFromFirstStage)}


@pytest.fixture(scope='module')
def slow():
    """Register reducers with an explicit attention map."""
    for name, toy in SLOW.items():
        MODELS.register_module(name=name, module=toy)
    yield
    for name in SLOW:
        MODELS.module_dict.pop(name)


@pytest.fixture(scope='module')
def ratios(slow):
    """Time with each reducer, relative to the plain model.

    Reducing in the first layer applies token weights and masks in the
    attention of all later layers.
    """
    vit = mmpretrain_vit(SIZE)
    candidates = {'plain': vary(vit, Variant())}
    for name in (*REDUCERS, *SLOW):
        candidate = vary(vit, Variant(name, 0.98))
        candidate.config['backbone']['reduce_at'] = (0,)
        candidates[name] = candidate
    setting = Setting(batch=1)
    steps = {name: make_step(one, setting) for name, one in candidates.items()}
    seconds = interleaved_seconds(steps, setting, rounds=5, warm_up=1)
    fastest = {name: min(values) for name, values in seconds.items()}
    return {name: own / fastest['plain'] for name, own in fastest.items()}


@pytest.mark.parametrize('name', REDUCERS)
def test_reducer_keeps_fused_attention(ratios, name):
    assert ratios[name] < BOUND


@pytest.mark.parametrize('name', SLOW)
def test_timing_detects_attention_maps(ratios, name):
    assert ratios[name] > BOUND
