# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from small_models import build, images, token_counts, vit

import mmclca
from mmclca.models import DPCKNN, Sinkhorn, ToMe
from mmclca.models.reduction.reducers.base import CountedReducer
from mmclca.models.reduction.tokens import Tokens
from mmclca.registry import MODELS

COUNTED = sorted(
    name
    for name in mmclca.models.reduction.reducers.__all__
    if issubclass(MODELS.get(f'mmclca.{name}'), CountedReducer)
)


@pytest.mark.parametrize(
    'keep_rate, counts',
    [
        (1, [196, 196, 196]),
        (0.7, [137, 96, 67]),
        (0.5, [98, 49, 24]),
        (0.25, [49, 12, 3]),
        (0.1, [19, 1, 1]),  # one is left where 0.001 of 196 are none
        ((1, 0.5, 0.25), [196, 98, 24]),
        ((0.1, 0.01, 1), [19, 1, 1]),
    ],
)
def test_count_is_a_share_of_the_initial_patches(keep_rate, counts):
    method = CountedReducer(keep_rate, num_patches=196, num_stages=3)
    assert [method.count(stage) for stage in range(3)] == counts
    assert method.count(-1) == 196


def test_equal_rates_are_a_power_as_in_the_authors_code():
    for single in (0.7, 0.9, 0.3):
        rates = (single,) * 3
        for keep_rate in (single, rates):
            method = CountedReducer(keep_rate, num_patches=10**6, num_stages=3)
            for stage in range(3):
                expected = int(10**6 * single ** (stage + 1))
                assert method.count(stage) == expected
                assert method.share(stage) == single ** (stage + 1)


def test_count_for_an_image_of_another_size():
    method = CountedReducer(0.5, num_patches=196, num_stages=2)
    tokens = Tokens(torch.zeros(1, 1, 1), num_patches=784)
    assert method.count_for(tokens, 0) == method.count(0, 784) == 392
    method = CountedReducer(num_tokens=[100, 7], num_patches=196, num_stages=2)
    assert method.count_for(tokens, 0) == 100
    assert [method.count(s, 50) for s in (-1, 0, 1)] == [50, 50, 7]
    assert method.share(1) == 7 / 196


@pytest.mark.parametrize('name', COUNTED)
def test_numbers_of_tokens_in_place_of_a_keep_rate(name):
    reducer = dict(type=f'mmclca.{name}', num_tokens=[10, 8, 5])
    config = vit(5, reducer=reducer, reduce_at=(1, 2, 3))
    with torch.no_grad():
        counts = token_counts(build(config).eval(), images(1))
    fused = name == 'EViT'
    left = [counts[i][1] - 1 - fused for i in (1, 2, 3)]
    if name == 'ATS':  # at most
        assert left[0] <= 10 and left[1] <= 8 and left[2] <= 5
    else:
        assert left == [10, 8, 5]


@pytest.mark.parametrize('name', COUNTED)
def test_stages_in_every_layer_some_of_which_remove_nothing(name):
    reducer = dict(type=f'mmclca.{name}', num_tokens=[16, 9, 9])
    config = vit(3, reducer=reducer, reduce_at=[0, 1, 2])
    with torch.no_grad():
        counts = token_counts(build(config).eval(), images(1))
    left = [leaving - 1 for _, leaving in counts]
    most = [16, 9, 9]
    if name == 'EViT':  # fuses what it drops, and cannot again drop nothing
        most = [16, 10, 10]
    if name == 'ATS':  # as many as the image needs
        assert all(a <= b for a, b in zip(left, most, strict=True))
    else:
        assert left == most


@pytest.mark.parametrize('name', COUNTED)
def test_numbers_of_tokens_beside_a_keep_rate(name):
    reducer = dict(type=f'mmclca.{name}', keep_rate=1, num_tokens=(8, 4, 2))
    named = r'num_tokens=\(8, 4, 2\) and keep_rate=1 '
    with pytest.raises(ValueError, match=named):
        MODELS.build(dict(reducer, num_patches=16))


def test_every_method_is_counted():
    registered = set(mmclca.models.reduction.reducers.__all__)
    assert set(COUNTED) == registered - {'TokenReducer'}


@pytest.mark.parametrize('method', [CountedReducer, ToMe, DPCKNN])
@pytest.mark.parametrize(
    'num_tokens, named',
    [
        ((8, 4), r'num_tokens=\(8, 4\) must be 3 numbers'),
        ([], r'num_tokens=\[\] must be 3 numbers'),
        (8, 'num_tokens=8 must be 3 numbers'),
        ((17, 4, 2), 'num_tokens=.* 17 is not .* 1 to 16'),
        ((8, 9, 2), r'\(8, 9, 2\): 9 is not allowed; .* 1 to 8 '),
        ((8, 4, 0), ': 0 is not allowed'),
        ((8, -4, 2), ': -4 is not allowed'),
        ((8, 4.0, 2), ': 4.0 is not allowed'),
        ((8, '4', 2), ": '4' is not allowed"),
        ((8, 4, True), ': True is not allowed'),
        ('842', ": '8' is not allowed"),
    ],
)
def test_numbers_of_tokens_that_are_not_allowed(method, num_tokens, named):
    with pytest.raises(ValueError, match=named):
        method(num_tokens=num_tokens, num_patches=16, num_stages=3)


@pytest.mark.parametrize(
    'options, named',
    [
        (dict(eps=0), 'eps=0 must be a number'),
        (dict(eps=-1.0), 'eps=-1.0 must be a number'),
        (dict(eps='1'), "eps='1' must be a number"),
        (dict(eps=float('nan')), 'eps=nan must be a number'),
        (dict(num_iterations=0), 'num_iterations=0 must be an integer, 1 or'),
        (dict(num_iterations=2.5), 'num_iterations=2.5 must be an integer'),
        (dict(num_iterations=True), 'num_iterations=True must be an integer'),
    ],
)
def test_settings_of_sinkhorn_that_are_not_allowed(options, named):
    with pytest.raises(ValueError, match=named):
        Sinkhorn(**options)


@pytest.mark.parametrize('name', COUNTED)
def test_an_option_that_there_is_not(name):
    config = dict(type=f'mmclca.{name}', keep_rates=0.5)
    with pytest.raises(TypeError, match="'keep_rates'"):
        MODELS.build(config)
