# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
import torch
from small_models import vit

from mmclca.models import TokenReducer
from mmclca.models.reduction.tokens import Tokens
from mmclca.registry import MODELS


def test_as_it_stands_it_reduces_nothing():
    reducer, tokens = TokenReducer(), Tokens(torch.randn(1, 3, 4))
    assert reducer.before(tokens, 0) is tokens
    assert reducer.between(tokens, None, 0) is tokens
    assert reducer.key_bias(tokens) is None
    assert reducer.softmax(tokens) is None
    assert reducer.loss(tokens) == {}
    assert not list(reducer.parameters())


def test_the_backbone_says_what_a_config_need_not():
    backbone = MODELS.build(
        vit(img_size=(32, 48), reducer=dict(type='mmclca.TopK'), reduce_at=[2])
    )
    assert backbone.reducer.embed_dims == 16
    assert backbone.reducer.num_patches == 4 * 6
    assert backbone.reducer.num_stages == 1


@pytest.mark.parametrize(
    'keep_rate, expected',
    [
        (0.3, (0.3, 0.3)),
        (1, (1, 1)),
        ([0.5, 0.2], (0.5, 0.2)),
        (np.float32(0.5), (0.5, 0.5)),
    ],
)
def test_keep_rate_is_a_number_or_one_per_stage(keep_rate, expected):
    reducer = TokenReducer(keep_rate, num_stages=2)
    assert reducer.keep_rates == expected


@pytest.mark.parametrize(
    'keep_rate, named',
    [
        (0, 'keep_rate=0: 0 is not allowed'),
        (-0.5, 'keep_rate=-0.5: -0.5 is not allowed'),
        (1.1, 'keep_rate=1.1: 1.1 is not allowed'),
        (float('nan'), 'nan is not allowed'),
        (None, 'keep_rate=None: None is not allowed'),
        ([0.5, 2], r'keep_rate=\[0.5, 2\]: 2 is not allowed'),
        ((0.5, '.5'), "'.5' is not allowed"),
        (True, 'keep_rate=True: True is not allowed'),
        ([0.5, False], 'False is not allowed'),
        ('.5', "keep_rate='.5': '.' is not allowed"),
    ],
)
def test_keep_rate_outside_of_0_to_1(keep_rate, named):
    allowed = '.*above 0 and at most 1'
    with pytest.raises(ValueError, match=named + allowed):
        TokenReducer(keep_rate, num_stages=2)


@pytest.mark.parametrize('keep_rate', [(), (0.5,), [0.5, 0.5, 0.5]])
def test_keep_rates_of_another_number_than_the_stages(keep_rate):
    named = f'has {len(keep_rate)} entries for 2 stages .*one per stage'
    with pytest.raises(ValueError, match=named):
        TokenReducer(keep_rate, num_stages=2)
