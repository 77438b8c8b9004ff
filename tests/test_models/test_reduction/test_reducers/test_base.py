# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
import torch
from small_models import build, images, token_counts, vit
from toy_reducers import shape

from mmclca.models import TokenReducer
from mmclca.models.reduction.reducers.counted import CountedReducer
from mmclca.models.reduction.tokens import Tokens
from mmclca.registry import MODELS


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
    reducer = TokenReducer(keep_rate, backbone=shape(num_stages=2))
    assert reducer.keep_rates == expected


COUNTED = sorted(
    name
    for name, registered in MODELS.module_dict.items()
    if issubclass(registered, CountedReducer)
    and registered.__module__.startswith('mmclca.')
)


@pytest.mark.parametrize(
    'keep_rate, counts',
    [
        (0.7, [137, 96, 67]),
        (0.1, [19, 1, 1]),  # at least one: 0.001 * 196 rounds to 0
        ((1, 0.5, 0.25), [196, 98, 24]),
    ],
)
def test_count_is_a_share_of_initial_patches(keep_rate, counts):
    method = CountedReducer(
        keep_rate, backbone=shape(num_patches=196, num_stages=3)
    )
    assert [method.count_patches(stage) for stage in range(3)] == counts
    assert method.count_patches(-1) == 196


def test_count_uses_power_if_rates_are_equal():
    for keep_rate in (0.7, (0.7,) * 3):
        method = CountedReducer(
            keep_rate, backbone=shape(num_patches=10**6, num_stages=3)
        )
        for stage in range(3):
            assert method.get_share(stage) == 0.7 ** (stage + 1)
            assert method.count_patches(stage) == int(
                10**6 * 0.7 ** (stage + 1)
            )


def test_count_scales_with_image_size():
    method = CountedReducer(0.5, backbone=shape(num_patches=196, num_stages=2))
    tokens = Tokens(torch.zeros(1, 1, 1), num_patches=784)
    assert method.count_left(tokens, 0) == method.count_patches(0, 784) == 392
    method = CountedReducer(
        num_tokens=[100, 7], backbone=shape(num_patches=196, num_stages=2)
    )
    assert method.count_left(tokens, 0) == 100
    assert [method.count_patches(s, 50) for s in (-1, 0, 1)] == [50, 50, 7]
    assert method.get_share(1) == 7 / 196


@pytest.mark.parametrize('name', COUNTED)
def test_num_tokens_are_kept_in_all_stages(name):
    assert MODELS.get(name).summary
    reducer = dict(type=f'mmclca.{name}', num_tokens=[16, 9, 5])
    config = vit(4, reducer=reducer, reduce_at=(0, 1, 2))
    with torch.no_grad():
        found = token_counts(build(config).eval(), images(1))
    left = [found[i][1] - 1 for i in range(3)]
    if name == 'ATS':  # maximum per image
        assert left[0] <= 16 and left[1] <= 9 and left[2] <= 5
    else:  # one more is the fused token, unless all tokens are kept
        fused = name == 'EViT'
        assert left == [16, 9 + fused, 5 + fused]
