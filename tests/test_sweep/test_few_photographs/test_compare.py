# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Paired differences over draws, and the bar."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from few_photographs_runs import BACKBONE, probe_result, trained_results

from mmclca.benchmark.few_photographs.arms import (
    LOGISTIC,
    NCM,
    OUR_PROBE,
    SHALLOWER,
    SMALLER,
    Frozen,
    ProbeArm,
)
from mmclca.sweep.few_photographs.compare import (
    difference,
    is_to_beat,
    judge,
    of_draws,
    to_arms,
)
from mmclca.sweep.few_photographs.runs import CLA, CLCA, OURS_TRAINED, to_runs

FULL = Frozen(BACKBONE)
HALF = Frozen(BACKBONE, 'EViT', 0.5)
TENTH = Frozen(BACKBONE, 'EViT', 0.1)
DEAR = [95.0, 96.0, 97.5]  # ours at 224 px
CHEAP = [91.0, 92.0, 93.5]  # ours at 160 px
PROBES = [
    probe_result(ProbeArm(OUR_PROBE, FULL), [94.0, 95.0, 96.0], 0.95),
    probe_result(ProbeArm(OUR_PROBE, HALF), DEAR, 0.6),
    probe_result(ProbeArm(OUR_PROBE, replace(HALF, img_size=160)), CHEAP, 0.3),
    probe_result(ProbeArm(OUR_PROBE, TENTH), [85.0, 86.0, 88.0], 0.41),
    probe_result(
        ProbeArm(SMALLER, replace(FULL, img_size=128)),
        [89.0, 89.5, 91.0],
        0.28,
    ),
    probe_result(ProbeArm(NCM, FULL, 'ncm'), [84.0, 85.0, 86.0], 1.25),
]
SPEEDS = {
    probe['network']: ms
    for probe, ms in zip(PROBES, (20.0, 10.0, 6.0, 8.0, 5.0), strict=False)
}


def arms_with(*probes, trained=()):
    return to_arms(to_runs([*PROBES, *probes], trained), SPEEDS)


def rival(accuracy, gmacs):
    """A smaller image without reduction."""
    arm = ProbeArm(SMALLER, replace(FULL, img_size=96))
    return probe_result(arm, accuracy, gmacs)


def find(arms, line, **values):
    for name, value in dict(values, line=line).items():
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
    results = trained_results('paper', 'cla', [80.0, 81.0], 0.4, 0.1)
    runs = of_draws(to_runs(PROBES, results), range(3))
    assert CLA not in set(runs.line) and len(runs) == 3 * len(PROBES)
    runs = of_draws(to_runs(PROBES, results), range(2))
    assert CLA in set(runs.line) and set(runs.draw) == {0, 1}


def test_ours_is_the_probe_with_half_of_the_tokens_of_any_image():
    arms = arms_with()
    assert arms.line.tolist() == [OUR_PROBE] * 4 + [SMALLER, NCM]
    ours = arms[arms.ours]
    assert ours.gmacs.tolist() == [0.6, 0.3]
    assert ours.pixels.tolist() == [224, 160]


@pytest.mark.parametrize(
    'arm',
    [
        ProbeArm(OUR_PROBE, replace(HALF, method='ToMe')),
        ProbeArm(OUR_PROBE, replace(HALF, keep_rate=0.25)),
        ProbeArm(LOGISTIC, HALF, 'logistic'),
        ProbeArm(SHALLOWER, HALF, layers=(0, 1)),
    ],
    ids=['ToMe', 'a quarter', 'logistic regression', 'fewer layers'],
)
def test_other_probes_are_rivals(arm):
    arms = arms_with(probe_result(arm, DEAR, 0.55))
    assert not find(arms, arm.line, gmacs=0.55).ours and arms.ours.sum() == 2


def test_ours_trained_on_is_a_rival():
    trained = trained_results('ours', 'base', DEAR, 0.59, 0.5)
    arms = arms_with(trained=trained)
    assert not find(arms, OURS_TRAINED).ours and arms.ours.sum() == 2
    assert OURS_TRAINED in [arm.line for arm, _ in judge(arms)[0].cheaper]


@pytest.mark.parametrize(
    ('gmacs', 'pixels'),
    [
        (1.25, 224),
        (0.598, 224),  # a third of a per cent less: that is equal
        (0.595, 160),
        (0.3, 160),
        (0.1, 160),  # nothing of ours costs so little
    ],
)
def test_an_arm_is_compared_with_the_dearest_it_could_pay(gmacs, pixels):
    accuracy = [90.0, 92.0, 93.0]
    arms = arms_with(rival(accuracy, gmacs))
    arm = find(arms, SMALLER, gmacs=gmacs)
    assert arms.pixels[arm.beside] == pixels and arms.ours[arm.beside]
    ours = pd.Series({224: DEAR, 160: CHEAP}[pixels])
    assert arm.difference == difference(pd.Series(accuracy), ours)


def test_what_an_arm_costs():
    smaller = find(arms_with(), SMALLER)
    # 120 images of 5 ms and half a second of fitting
    assert smaller.ms == 5 and smaller.seconds == pytest.approx(1.1)
    assert smaller.macro_recall == pytest.approx(smaller.accuracy - 1)


def test_the_bar_is_judged_at_each_cost_of_ours():
    dear, cheap = judge(arms_with())
    assert (dear.ours.pixels, cheap.ours.pixels) == (224, 160)
    assert dear.holds and cheap.holds
    # all tokens cost more; ours with a smaller image is no rival
    assert [arm.gmacs for arm, _ in dear.cheaper] == [0.28, 0.41]
    assert [arm.gmacs for arm, _ in cheap.cheaper] == [0.28]
    # nothing is as good, however fast it is
    assert not dear.ties and not cheap.ties


def test_the_bar_fails_where_a_cheaper_arm_is_above():
    above = [value + 1 for value in CHEAP]
    dear, cheap = judge(arms_with(rival(above, 0.29)))
    assert dear.holds and not cheap.holds
    ((arm, beside),) = cheap.above
    assert arm.gmacs == 0.29 and beside.low > 0
    assert not cheap.ties  # it was not timed
    # equal costs count, dearer ones do not
    assert not judge(arms_with(rival(above, 0.301)))[1].holds
    assert judge(arms_with(rival(above, 0.302)))[1].holds


def test_what_is_as_good_and_faster_is_no_failure():
    arms = to_arms(
        to_runs([*PROBES, rival([91.5, 91.5, 94.0], 0.29)], []),
        SPEEDS | {rival([], 0)['network']: 4.0},
    )
    _, cheap = judge(arms)
    assert cheap.holds
    assert [arm.ms for arm, _ in cheap.ties] == [4]


def paper(kind, accuracy, gmacs, keep_rate):
    return trained_results('paper', kind, accuracy, gmacs, keep_rate)


def test_clca_and_cla_are_beaten_by_what_they_are_compared_with():
    below = [85.0, 86.0, 87.0]
    trained = [
        *paper('clca', below, 0.44, 0.1),
        *paper('cla', below, 0.42, 0.1),
        *paper('clca', below, 0.7, 0.25),
        *paper('clca', below, 0.9, 0.5),  # nothing is asked of half
    ]
    dear, cheap = judge(arms_with(trained=trained))
    assert [(a.line, a.keep_rate) for a, _ in dear.to_beat] == [(CLCA, 0.25)]
    assert [(a.line, a.keep_rate) for a, _ in cheap.to_beat] == [
        *[(CLCA, 0.1), (CLA, 0.1)]
    ]
    gains = [gain.mean for _, gain in cheap.to_beat]
    assert gains == pytest.approx([np.mean(CHEAP) - 86] * 2)
    assert dear.holds and cheap.holds


@pytest.mark.parametrize('kind', ['clca', 'cla'])
@pytest.mark.parametrize(
    ('keep_rate', 'holds'), [(0.1, False), (0.25, False), (0.5, True)]
)
def test_the_bar_fails_where_ours_is_not_clearly_above(kind, keep_rate, holds):
    close = [91.5, 91.0, 93.0]  # below ours in the mean
    trained = paper(kind, close, 0.4, keep_rate)
    dear, cheap = judge(arms_with(trained=trained))
    assert dear.holds and cheap.holds == holds and not cheap.above
    lines = [arm.line for arm, _ in cheap.not_below]
    assert lines == ([] if holds else [dict(clca=CLCA, cla=CLA)[kind]])


def test_what_must_be_beaten_is_told_of_runs_and_arms():
    trained = [
        *paper('clca', CHEAP, 0.4, 0.1),
        *paper('cla', CHEAP, 0.5, 0.25),
        *paper('cla', CHEAP, 0.6, 0.5),
        *trained_results('ours', 'base', CHEAP, 0.4, 0.1),
        *trained_results('plain', 'base', CHEAP, 0.4, 0.25),
    ]
    runs = to_runs(PROBES, trained)
    for table in (runs, to_arms(runs, {})):
        told = table[is_to_beat(table)]
        assert set(zip(told.line, told.keep_rate, strict=True)) == {
            (CLCA, 0.1),
            (CLA, 0.25),
        }
