# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
import torch
from small_models import vit

from mmclca.models import TokenReducer
from mmclca.models.reduction.tokens import Tokens
from mmclca.registry import MODELS


def test_base_reducer_reduces_nothing():
    reducer, tokens = TokenReducer(), Tokens(torch.randn(1, 3, 4))
    assert reducer.before(tokens, 0) is tokens
    assert reducer.between(tokens, None, 0) is tokens
    assert reducer.key_bias(tokens) is None
    assert reducer.softmax(tokens) is None
    assert reducer.loss(tokens) == {}
    assert not list(reducer.parameters())


def test_backbone_fills_in_reducer_sizes():
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
def test_keep_rate_is_expanded_to_all_stages(keep_rate, expected):
    reducer = TokenReducer(keep_rate, num_stages=2)
    assert reducer.keep_rates == expected
