# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Gains by hand."""

import pytest
from sweep_results import result, seeds, sweep

from mmclca.sweep.gains import gains, gains_to_markdown
from mmclca.sweep.report import to_table


def test_by_hand():
    table = to_table(
        [
            *seeds(80.0, 84.0, 60.0, gradients=(4.0, 2.0)),
            *seeds(86.0, 88.0, clca='clca', gradients=(3.0, 1.0)),
            *seeds(79.0, clca='cla', gradients=(8.0, 1.0)),
        ]
    )
    gained = gains(table).set_index('clca')
    assert gained.gain.to_dict() == {'cla': -1.0, 'clca': 5.0}
    assert gained.seeds.to_dict() == {'cla': 1, 'clca': 2}
    assert gained.gain_std.clca == pytest.approx(2**0.5)
    assert gained.gain_std.isna().cla
    assert gained.gradient_ratio.to_dict() == {'cla': 2.0, 'clca': 0.75}


def test_seeds_of_other_settings_are_not_compared():
    table = to_table(
        [
            *seeds(80.0),
            *seeds(86.0, clca='clca', keep_rate=0.5),
            result(99.0, clca='clc', seed=2),
            *seeds(70.0, method='ToMe'),
            *seeds(71.5, method='ToMe', clca='clca'),
        ]
    )
    gained = gains(table)
    assert gained.method.tolist() == ['ToMe']
    assert gained.gain.tolist() == [1.5]


def test_in_words():
    lines = gains_to_markdown(gains(to_table(sweep()))).splitlines()
    assert '+CLA' in lines[0] and 'gradient, CLCA' in lines[0]
    (quarter,) = [
        line for line in lines if ' 0.25 |' in line and 'EViT' in line
    ]
    assert '6.0 ± 1.4 (2)' in quarter  # 87 - 80 and 89 - 84
    assert '0.5 ± 0.7 (2)' in quarter  # 81 - 80 and 84 - 84
    assert '0.75' in quarter  # 3 / 4
    assert len(lines) == 2 + 3
    assert 'variant' not in lines[0]


def test_variants_in_words():
    table = to_table(
        [
            *seeds(80.0, variant='slow'),
            *seeds(81.0, variant='slow', clca='cla'),
        ]
    )
    assert '| slow ' in gains_to_markdown(gains(table))
