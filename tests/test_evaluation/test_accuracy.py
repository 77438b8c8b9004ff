# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
from scipy.stats import binomtest

from mmclca.evaluation import wilson


@pytest.mark.parametrize('right', [0, 3, 7, 12])
def test_same_as_scipy(right):
    expected = binomtest(right, 12).proportion_ci(0.9, 'wilson')
    assert wilson(right / 12, 12, 0.9) == pytest.approx(tuple(expected))


def test_no_image_tells_nothing():
    assert wilson(float('nan'), 0) == (0, 1)
