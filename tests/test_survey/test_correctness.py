# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Posterior of correct predictions, compared with slow loops."""

from itertools import product

import numpy as np
import pytest

from mmclca.survey.correctness import (
    EFFECTS,
    SHIFTS,
    SLOPES,
    SPREADS,
    LabeledPredictions,
    compute_log_likelihood,
    compute_log_prior,
    sample_correctness,
)


def make_predictions(scores, correct, predicted=None, training_photos=60):
    scores = np.array(scores, float)
    if predicted is None:
        predicted = np.zeros(len(scores), int)
    return LabeledPredictions(
        np.array(predicted),
        scores,
        np.arange(len(correct)),
        np.array(correct, bool),
        training_photos,
    )


def test_likelihood_equals_a_loop_over_the_grid():
    logits, signs = np.array([-1.0, 0.5, 2.0]), np.array([1, -1, 1])
    members = np.array([[1, 0], [0, 1], [1, 0]])
    grid = compute_log_likelihood(logits, 0.3, signs, members)
    nodes = [*map(range, grid.shape[:4])]
    for a, b, t, u in [*product(*nodes)][::97]:
        values = 0.3 + SHIFTS[a] + SLOPES[b] * logits
        values = values + SPREADS[t] * EFFECTS[u]
        logs = -np.log1p(np.exp(-signs * values))
        expected = [logs[0] + logs[2], logs[1]]
        assert grid[a, b, t, u] == pytest.approx(expected)


def test_prior_of_alike_photos_is_narrower_with_many_training_photos():
    few, many = (
        np.exp(compute_log_prior(x)).sum(axis=(1, 2)) for x in (9, 900)
    )
    near = np.abs(SHIFTS) < 0.4
    assert (many / many.sum())[near].sum() > (few / few.sum())[near].sum()


@pytest.mark.parametrize('is_correct', [True, False])
def test_labels_move_the_posterior_of_all_photos(is_correct):
    data = make_predictions(np.full(50, 0.7), [is_correct] * 20)
    rng = np.random.default_rng(0)
    samples = sample_correctness(data, 2, 2000, rng)
    draws = samples.draw_correct(rng, data.predicted, data.logits)
    # 0.7 +- 0.1 by the scores; 20 equal labels say much more
    assert (draws.mean() > 0.85) == is_correct
    assert (draws.mean() < 0.25) == (not is_correct)


def test_wrong_class_has_less_correct_photos_than_others():
    predicted = np.repeat([0, 1, 0, 1, 2], 20)
    data = make_predictions(
        np.full(100, 0.8), [True] * 20 + [False] * 20, predicted
    )
    rng = np.random.default_rng(0)
    samples = sample_correctness(data, 3, 2000, rng)
    draws = samples.draw_correct(rng, data.predicted, data.logits)
    shares = [draws[:, predicted == x].mean() for x in range(3)]
    assert shares[0] > 0.85 and shares[1] < 0.35
    assert shares[1] < shares[2] < shares[0]


def test_higher_scores_are_correct_more_often():
    data = make_predictions(
        np.r_[np.full(50, 0.5), np.full(50, 0.99)], [True, False] * 5
    )
    rng = np.random.default_rng(0)
    samples = sample_correctness(data, 2, 2000, rng)
    draws = samples.draw_correct(rng, data.predicted, data.logits)
    assert draws[:, 50:].mean() > draws[:, :50].mean() + 0.15
