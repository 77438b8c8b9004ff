# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
from mmcv import imread

from mmclca.benchmark import Size
from mmclca.benchmark.candidates import timm_vit
from mmclca.benchmark.growth import (
    attention_share,
    draw_growth,
    exponent,
    exponents,
)

RECORDS = [
    dict(label=label, pixels=str(side), seconds=3.0 * side**power)
    for label, power in (('a', 2), ('b', 4))
    for side in (32, 64, 32)
]


def test_exponent_of_a_power_law():
    assert exponent([10, 100, 1000], [3, 300, 30000]) == pytest.approx(2)
    assert exponent([4, 9], [2, 3]) == pytest.approx(0.5)


def test_exponents_of_each_model():
    fitted = exponents(RECORDS, ['seconds'])
    assert fitted['a']['seconds'] == pytest.approx(1)
    assert fitted['b']['seconds'] == pytest.approx(2)


def test_a_model_of_one_size_has_no_exponent(tmp_path):
    """It was left out of the others, for memory."""
    records = [*RECORDS, dict(label='c', pixels='32', seconds=1.0)]
    fitted = exponents(records, ['seconds'])
    assert list(fitted) == ['a', 'b']
    draw_growth(records, fitted, dict(seconds='s'), tmp_path / 'plot.png')


@pytest.mark.parametrize('img_size', [224, 896])
def test_share_of_attention(img_size):
    """12 N C^2 for all products with weights in a layer, 2 N^2 C for these."""
    size = Size.of_arch('deit-small', img_size)
    cost = timm_vit(size).cost()
    tokens, dims = (img_size // 16) ** 2 + 1, size.embed_dims
    share = 2 * tokens / (12 * dims + 2 * tokens)
    assert attention_share(cost, size) == pytest.approx(share, rel=0.02)


def test_plot(tmp_path):
    out = tmp_path / 'plot.png'
    fitted = exponents(RECORDS, ['seconds'])
    draw_growth(RECORDS, fitted, dict(seconds='time (s)'), out)
    assert imread(str(out)).std() > 5
