# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Paired differences over draws, and the bar."""

import numpy as np
import pandas as pd
import pytest
from few_photographs_runs import BACKBONE, probe_result, trained_results

from mmclca.benchmark.few_photographs.arms import (
    NCM,
    OUR_PROBE,
    SMALLER,
    Frozen,
    ProbeArm,
)
from mmclca.sweep.few_photographs.compare import (
    difference,
    judge,
    of_draws,
    to_arms,
)
from mmclca.sweep.few_photographs.runs import CLA, CLCA, OURS_TRAINED, to_runs

FULL = Frozen(BACKBONE)
EVIT = Frozen(BACKBONE, 'EViT', 0.1)
PROBES = [
    probe_result(ProbeArm(OUR_PROBE, FULL), [94.0, 95.0, 96.0], 0.95),
    probe_result(ProbeArm(OUR_PROBE, EVIT), [85.0, 86.0, 88.0], 0.41),
    probe_result(
        ProbeArm(SMALLER, Frozen(BACKBONE, img_size=128)),
        [89.0, 89.5, 91.0],
        0.28,
    ),
    probe_result(ProbeArm(NCM, FULL, 'ncm'), [84.0, 85.0, 86.0], 1.25),
]
SPEEDS = {PROBES[0]['network']: 20.0, PROBES[1]['network']: 10.0}
SPEEDS |= {
    PROBES[2]['network']: 5.0,
    'ours_base_deit-tiny-p16_evit-kr10_224px': 9,
}


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
    assert CLA not in set(runs.line) and len(runs) == 12
    runs = of_draws(to_runs(PROBES, results), range(2))
    assert CLA in set(runs.line) and set(runs.draw) == {0, 1}


def test_frozen_arms_are_compared_with_our_probe():
    arms = to_arms(to_runs(PROBES, []), SPEEDS)
    assert arms.line.tolist() == [OUR_PROBE, OUR_PROBE, SMALLER, NCM]
    assert arms.ours.tolist() == [True, True, False, False]
    ncm = find(arms, NCM)
    assert ncm.difference.mean == pytest.approx(-10)  # to the full network
    smaller = find(arms, SMALLER)
    assert smaller.difference.mean == pytest.approx(3.5)  # of nearest cost
    # 120 images of 5 ms and half a second of fitting
    assert smaller.ms == 5 and smaller.seconds == pytest.approx(1.1)
    assert smaller.macro_recall == pytest.approx(smaller.accuracy - 1)


def test_the_bar_fails_where_a_cheaper_arm_is_above():
    arms = to_arms(to_runs(PROBES, []), SPEEDS)
    full, reduced = judge(arms)
    # ours with fewer tokens is no rival
    assert full.holds and [arm.line for arm, _ in full.cheaper] == [SMALLER]
    assert not reduced.holds
    ((arm, beside),) = reduced.above
    assert arm.line == SMALLER and beside.low > 0
    assert reduced.ties == reduced.above  # it is faster, too


def test_the_bar_holds_for_ours_as_trained():
    results = [
        *trained_results('ours', 'base', [92.0, 93.0, 94.5], 0.415, 0.1),
        *trained_results('paper', 'clca', [85.0, 86.0, 87.0], 0.44, 0.1),
        *trained_results('paper', 'cla', [86.0, 87.0, 88.0], 0.416, 0.1),
    ]
    arms = to_arms(to_runs(PROBES, results), SPEEDS)
    ours = find(arms, OURS_TRAINED)
    assert ours.seconds == 101 and ours.ms == 9
    assert not find(arms, OUR_PROBE, keep_rate=0.1).ours
    _, verdict = judge(arms)
    assert verdict.ours.line == OURS_TRAINED and verdict.holds
    # CLA costs a quarter of a per cent more: that is equal
    lines = {arm.line for arm, _ in verdict.cheaper}
    assert lines == {CLA, SMALLER, OUR_PROBE}
    assert [arm.line for arm, _ in verdict.beaten] == [CLCA, CLA]


def test_the_bar_fails_where_ours_is_not_above_cla():
    results = [
        *trained_results('ours', 'base', [92.0, 93.0, 94.5], 0.415, 0.1),
        *trained_results('paper', 'cla', [92.5, 92.0, 94.0], 0.42, 0.1),
    ]
    _, verdict = judge(to_arms(to_runs(PROBES, results), SPEEDS))
    assert not verdict.above and not verdict.holds
    assert [arm.line for arm, _ in verdict.not_below] == [CLA]
