# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which lines the picture has, and what the legend calls them."""

import pytest
from few_photographs_runs import BACKBONE, probe_result, trained_results

from mmclca.benchmark.few_photographs.arms import (
    LOGISTIC,
    OUR_PROBE,
    SHALLOWER,
    SMALLER,
    Frozen,
    ProbeArm,
)
from mmclca.sweep.few_photographs.compare import to_arms
from mmclca.sweep.few_photographs.picture import draw_arms
from mmclca.sweep.few_photographs.runs import to_runs

OURS = 'ours: our probe, EViT 0.5'
FULL = Frozen(BACKBONE)
HALF = Frozen(BACKBONE, 'EViT', 0.5)
PROBES = [
    (ProbeArm(OUR_PROBE, FULL), 95, 0.95),
    (ProbeArm(OUR_PROBE, HALF), 96, 0.59),
    (ProbeArm(OUR_PROBE, Frozen(BACKBONE, 'EViT', 0.1)), 87, 0.41),
    (ProbeArm(OUR_PROBE, Frozen(BACKBONE, 'EViT', 0.5, 160)), 94, 0.29),
    (ProbeArm(OUR_PROBE, Frozen(BACKBONE, 'EViT', 0.5, 192)), 95, 0.42),
    (ProbeArm(OUR_PROBE, Frozen(BACKBONE, 'ToMe', 0.5)), 93, 0.58),
    (ProbeArm(SMALLER, Frozen(BACKBONE, img_size=128)), 92, 0.28),
    (ProbeArm(SHALLOWER, FULL, layers=(0, 1)), 91, 0.3),
    (ProbeArm(SHALLOWER, HALF, layers=(0, 1)), 90, 0.25),
    (ProbeArm(LOGISTIC, Frozen(BACKBONE, 'ToMe', 0.5), 'logistic'), 89, 0.6),
]
TRAINED = [
    *trained_results('ours', 'base', [88.0], 0.42, 0.1),
    *trained_results('ours', 'base', [93.0], 0.6, 0.5),
    *trained_results('ours', 'base', [92.0], 0.43, 0.5, size=192),
    *trained_results('paper', 'clca', [81.0], 0.44, 0.1),
    *trained_results('paper', 'cla', [80.0], 0.42, 0.1),
]


@pytest.fixture(scope='module')
def figure():
    probes = [probe_result(arm, [a], gmacs) for arm, a, gmacs in PROBES]
    arms = to_arms(to_runs(probes, TRAINED), {})
    return draw_arms({'trained': arms, 'again': arms})


@pytest.fixture(scope='module')
def lines(figure):
    return {line.get_label(): line for line in figure.axes[0].lines}


def points(line):
    return list(zip(*line.get_data(), strict=True))


def test_ours_is_one_line_of_all_sizes(lines):
    assert points(lines[OURS]) == [(0.29, 94), (0.42, 95), (0.59, 96)]
    width, above = lines[OURS].get_linewidth(), lines[OURS].get_zorder()
    others = [line for label, line in lines.items() if label != OURS]
    assert all(line.get_linewidth() < width for line in others)
    assert all(line.get_zorder() < above for line in others)


def test_our_probe_with_other_reductions_are_rivals(lines):
    # it is ours with half of the tokens, between more and fewer
    evit = points(lines['our probe, EViT'])
    assert evit == [(0.41, 87), (0.59, 96), (0.95, 95)]
    assert points(lines['our probe, ToMe']) == [(0.58, 93)]


def test_trained_arms_are_seen(figure, lines):
    assert points(lines['our probe, trained on, EViT']) == [
        *[(0.42, 88), (0.6, 93)]
    ]
    smaller = lines['our probe, trained on, EViT 0.5, smaller']
    assert points(smaller) == [(0.43, 92)]
    assert points(lines['CLCA, as in the paper, EViT']) == [(0.44, 81)]
    low, high = figure.axes[0].get_ylim()
    accuracies = [a for line in lines.values() for a in line.get_ydata()]
    assert low < min(accuracies) == 80 and high > max(accuracies)


def test_lines_look_different(lines):
    looks = [
        (line.get_color(), line.get_marker(), line.get_linestyle())
        for line in lines.values()
    ]
    assert len(set(looks)) == len(lines) == 11


def test_legend_names_each_line_once_and_ours_first(figure, lines):
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels[0] == OURS and sorted(labels) == sorted(lines)
    assert labels.index(SMALLER) > labels.index('CLA alone, EViT')
    figure.draw_without_rendering()
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1
