# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Choice of tokens per layer by dynamic programming."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from schedule_choice import DEPTH, FIRST_LAYER, Clock, Losses, Schedule, choose

from mmclca.benchmark.layer_times import LayerTimes

LAYERS = (3, 6, 10)  # with losses
COUNTS = (3, 6)
IMG_SIZE = 48  # 9 patches
FULL = Schedule(IMG_SIZE, {})
CLOCK = Clock(LayerTimes([4, 10, 197], [1.0, 2.0, 20.0]))


@pytest.fixture
def losses():
    """Losses that fall with the layer and with the patches."""
    rows = [
        dict(img_size=IMG_SIZE, layer=layer, patches=left, a=share, b=share)
        for layer in LAYERS
        for left in COUNTS
        for share in [0.1 + 0.3 / layer - 0.01 * left]
    ]
    rows.append(dict(img_size=IMG_SIZE, layer=0, patches=9, a=0.0, b=0.4))
    return Losses(pd.DataFrame(rows), ['a', 'b'])


def list_schedules():
    for counts in product((9, *COUNTS), repeat=len(LAYERS)):
        if list(counts) == sorted(counts, reverse=True):
            left, schedule = 9, {}
            for layer, count in zip(LAYERS, counts, strict=True):
                if count < left:
                    left = schedule[layer] = count
            yield Schedule(IMG_SIZE, schedule)


@pytest.mark.parametrize('share', [0.7, 0.8, 0.9])
def test_chosen_schedule_has_the_least_loss_within_the_budget(losses, share):
    budget = share * CLOCK.total(FULL)
    loss, schedule = choose(CLOCK, losses, IMG_SIZE, budget)
    assert CLOCK.total(schedule) <= budget + 0.1  # rounded
    assert loss == pytest.approx(losses.total(schedule))
    larger = [
        losses.total(x)
        for x in list_schedules()
        if CLOCK.total(x) <= budget - 0.1
    ]
    assert larger and loss <= min(larger) + 1e-9


def test_nothing_is_reduced_if_the_budget_is_large(losses):
    loss, schedule = choose(CLOCK, losses, IMG_SIZE, 100)
    assert schedule == FULL
    # the loss of smaller images: the share 0.2 on average, of 2/3
    assert loss == pytest.approx(-np.log(1 - 0.3))


def test_loss_is_infinite_if_the_budget_is_too_small(losses):
    assert choose(CLOCK, losses, IMG_SIZE, 5) == (np.inf, FULL)


def test_a_reduction_takes_time_and_saves_it_in_later_layers():
    late = CLOCK.total(Schedule(IMG_SIZE, {DEPTH - 1: 8}))
    early = CLOCK.total(Schedule(IMG_SIZE, {FIRST_LAYER: 3}))
    assert early < CLOCK.total(FULL) < late
