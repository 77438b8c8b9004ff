# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Paired differences over draws, and the bar."""

import numpy as np
import pandas as pd
import pytest
from compare import (
    CLA,
    CLCA,
    OUR_PROBE,
    SHALLOWER,
    difference,
    judge,
    of_draws,
    to_arms,
    to_runs,
)

SMALLER = 'our probe, smaller image'
DEAR = [95.0, 96.0, 97.5]  # ours at 224 px
CHEAP = [91.0, 92.0, 93.5]  # ours at 160 px


def runs_of(line, accuracies, gmacs, method='', keep_rate=1.0, **more):
    """Runs of an arm, one a draw."""
    cell = dict(line=line, method=method, keep_rate=keep_rate, gmacs=gmacs)
    cell |= dict(img_size=224, depth=9, ms=10 * gmacs, seconds=1.0) | more
    return [
        dict(cell, draw=draw, accuracy=value, macro_recall=value - 1)
        for draw, value in enumerate(accuracies)
    ]


def half(accuracies, gmacs, img_size):
    size = dict(img_size=img_size)
    return runs_of(OUR_PROBE, accuracies, gmacs, 'EViT', 0.5, **size)


def arms_with(*more):
    """Ours at two costs, a dearer arm, and others."""
    runs = [half(DEAR, 0.6, 224), half(CHEAP, 0.3, 160), *more]
    runs.append(runs_of(OUR_PROBE, [94.0, 95.0, 96.0], 0.95))
    return to_arms(pd.DataFrame(row for arm in runs for row in arm))


def find(arms, **values):
    for name, value in values.items():
        arms = arms[arms[name] == value]
    (row,) = arms.itertuples()
    return row


def test_difference_is_paired():
    one = pd.Series([90.0, 92.0, 97.0], index=[0, 1, 2])
    other = pd.Series([89.0, 90.0, 94.0, 10.0], index=[0, 1, 2, 3])
    found = difference(one, other)
    assert found.mean == pytest.approx(2) and found.draws == 3
    # t of two degrees of freedom at 0.975, and the standard error of 1, 2, 3
    half = 4.302653 / 3**0.5
    assert found.high - 2 == pytest.approx(half, rel=1e-6)
    assert 2 - found.low == pytest.approx(half, rel=1e-6)


def test_one_draw_has_no_interval():
    found = difference(pd.Series([90.0]), pd.Series([89.0]))
    assert found.mean == 1 and np.isnan([found.low, found.high]).all()


def test_arms_without_all_draws_are_left_out():
    runs = runs_of(CLA, [80.0, 81.0], 0.4) + runs_of(CLCA, [80.0] * 3, 0.4)
    runs = pd.DataFrame(runs)
    assert set(of_draws(runs, range(3)).line) == {CLCA}
    assert len(of_draws(runs, range(2))) == 4


@pytest.mark.parametrize(
    'arm',
    [
        dict(line=OUR_PROBE, method='ToMe', keep_rate=0.5),
        dict(line=OUR_PROBE, method='EViT', keep_rate=0.25),
        dict(line=SHALLOWER, method='EViT', keep_rate=0.5),
    ],
    ids=['ToMe', 'a quarter', 'fewer layers'],
)
def test_other_probes_are_rivals(arm):
    arms = arms_with(runs_of(accuracies=DEAR, gmacs=0.55, **arm))
    assert not find(arms, gmacs=0.55).ours
    assert arms[arms.ours].img_size.tolist() == [224, 160]


@pytest.mark.parametrize(
    ('gmacs', 'pixels'),
    [
        (1.25, 224),
        (0.598, 224),  # a third of a per cent less: that is equal
        (0.595, 160),
        (0.1, 160),  # nothing of ours costs so little
    ],
)
def test_an_arm_is_compared_with_the_dearest_it_could_pay(gmacs, pixels):
    accuracy = [90.0, 92.0, 93.0]
    arms = arms_with(runs_of(SMALLER, accuracy, gmacs, img_size=96))
    arm = find(arms, line=SMALLER)
    assert arms.img_size[arm.beside] == pixels and arms.ours[arm.beside]
    ours = pd.Series({224: DEAR, 160: CHEAP}[pixels])
    assert arm.difference == difference(pd.Series(accuracy), ours)


@pytest.mark.parametrize('more', [-1, 1])
def test_the_bar_fails_where_a_cheaper_arm_is_above(more):
    rival = [value + more for value in CHEAP]
    arms = arms_with(runs_of(SMALLER, rival, 0.29, ms=1.0))
    dear, cheap = judge(arms)
    assert (dear['ours'].img_size, cheap['ours'].img_size) == (224, 160)
    assert [arm.gmacs for arm, _ in dear['cheaper']] == [0.29]
    assert not dear['above'] and len(cheap['above']) == (more > 0)
    assert len(cheap['ties']) == (more > 0)


@pytest.mark.parametrize('clca', [88.0, 91.9])
def test_ours_must_be_clearly_above_clca(clca):
    values = [clca - 1, clca, clca + 2]
    arms = arms_with(runs_of(CLCA, values, 0.44, 'EViT', 0.1))
    dear, cheap = judge(arms)
    assert not dear['to_beat'] and len(cheap['to_beat']) == 1
    assert len(cheap['not_below']) == (clca > 90)


def test_runs_of_both_kinds():
    frozen = dict(backbone='b', method='EViT', keep_rate=0.5, img_size=160)
    probe = dict(
        dataset='leaf40_white',
        arm=dict(line=OUR_PROBE, frozen=frozen, layers=[0, 1]),
        network='n',
        train_images=120,
        accuracy=[90.0, 91.0],
        macro_recall=[80.0, 81.0],
        fit_seconds=[0.5, 0.7],
        gmacs=0.3,
    )
    cell = dict(dataset='leaf40', backbone='lf-evit_b', method='EViT')
    cell |= dict(keep_rate=1.0, size=128, clca='base', variant='small-d3')
    metrics = {'single-label/recall': 70.0}
    result = dict(cell=cell, accuracy=92.0, gmacs=0.4, metrics=metrics)
    result['cpu_seconds'] = 50.0
    runs = to_runs([probe], [result], dict(n=5.0))
    assert runs.draw.tolist() == [0, 1, 3] and set(runs.backbone) == {'b'}
    assert set(runs.dataset) == {'leaf40_white'}
    assert runs.img_size.tolist() == [160, 160, 128]
    assert runs.method.tolist() == ['EViT', 'EViT', '']
    assert runs.line[2] == 'our probe, trained on, smaller image'
    # 120 images of 5 ms, and fitting
    assert runs.seconds.tolist() == pytest.approx([1.1, 1.3, 50.0])
    assert runs.ms.isna().tolist() == [False, False, True]
