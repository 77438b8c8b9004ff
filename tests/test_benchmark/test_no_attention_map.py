# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""No reducer falls back to an attention map in memory, unnoticed: by time.

``test_registered_reducers.py`` looks at the tensors that are made; this one
at the clock, which sees any other way to be as slow.
"""

import pytest
from toy_reducers import MaskBySoftmax, MaskFromFirstStage

from mmclca.benchmark import Setting, Size, interleaved_seconds
from mmclca.benchmark.candidates import REDUCERS, mmpretrain_vit, varied
from mmclca.benchmark.steps import step_of
from mmclca.models import Variant
from mmclca.registry import MODELS

pytestmark = pytest.mark.alone
# many heads of few channels: the map is most of what there is to do
SIZE = Size('32 x 32 patches', (512, 512), 64, 4, 8, 64)
BOUND = 3.3  # the slowest takes 2.3 times as long, with maps 4.9
SLOW = {toy.__name__: toy for toy in (MaskBySoftmax, MaskFromFirstStage)}


@pytest.fixture(scope='module')
def slow():
    """Registers reducers that make the map."""
    for name, toy in SLOW.items():
        MODELS.register_module(name=name, module=toy)
    yield
    for name in SLOW:
        MODELS.module_dict.pop(name)


@pytest.fixture(scope='module')
def ratios(slow):
    """Time of a model with each reducer over that of the plain one.

    They reduce in the first layer, so that weights and masks that they set
    are in the attention of the others.
    """
    vit = mmpretrain_vit(SIZE)
    candidates = {'plain': varied(vit, Variant())}
    for name in (*REDUCERS, *SLOW):
        candidate = varied(vit, Variant(name, 0.98))
        candidate.config['backbone']['reduce_at'] = (0,)
        candidates[name] = candidate
    setting = Setting(batch=1)
    steps = {name: step_of(one, setting) for name, one in candidates.items()}
    seconds = interleaved_seconds(steps, setting, rounds=5, warm_up=1)
    fastest = {name: min(values) for name, values in seconds.items()}
    return {name: own / fastest['plain'] for name, own in fastest.items()}


@pytest.mark.parametrize('name', REDUCERS)
def test_attention_stays_fused(ratios, name):
    assert ratios[name] < BOUND


@pytest.mark.parametrize('name', SLOW)
def test_a_map_would_be_seen(ratios, name):
    assert ratios[name] > BOUND
