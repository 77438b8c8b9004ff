# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""No reducer falls back to an attention map in memory, unnoticed: by time.

``test_registered_reducers.py`` looks at the tensors that are made; this one
at the clock, which sees any other way to be as slow.
"""

import pytest
from toy_reducers import MaskBySoftmax

from mmclca.benchmark import Setting, Size, seconds_in_turns
from mmclca.benchmark.candidates import METHODS, plain_vit, reduced_vit
from mmclca.benchmark.steps import step_of
from mmclca.benchmark.turns import Clock
from mmclca.registry import MODELS

# many heads of few channels: the map is most of what there is to do
SIZE = Size('32 x 32 patches', (512, 512), 64, 4, 8, 64)
BOUND = 2.3  # the slowest one takes 1.5 times as long, with a map all take 4
SLOW = 'MaskBySoftmax'


@pytest.fixture(scope='module')
def slow():
    """The name of a reducer that makes the map."""
    MODELS.register_module(name=SLOW, module=MaskBySoftmax)
    yield SLOW
    MODELS.module_dict.pop(SLOW)


@pytest.fixture(scope='module')
def ratios(slow):
    """Time of a model with each reducer over that of the plain one."""
    candidates = {'plain': plain_vit(SIZE)}
    for name in (*METHODS, slow):
        candidate = reduced_vit(SIZE, name, 0.9, clca=False)
        candidate.config['backbone']['reduce_at'] = (SIZE.num_layers - 1,)
        candidates[name] = candidate
    setting = Setting(batch=1)
    steps = {name: step_of(one, setting) for name, one in candidates.items()}
    seconds = seconds_in_turns(steps, Clock(), rounds=3, warm_up=1)
    fastest = {name: min(values) for name, values in seconds.items()}
    return {name: own / fastest['plain'] for name, own in fastest.items()}


@pytest.mark.parametrize('name', METHODS)
def test_attention_stays_fused(ratios, name):
    assert ratios[name] < BOUND


def test_a_map_would_be_seen(ratios, slow):
    assert ratios[slow] > BOUND
