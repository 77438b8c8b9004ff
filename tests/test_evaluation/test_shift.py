# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Two-sample test of new photos against the training photos."""

import pytest
import torch
from scipy.stats import t as student

from mmclca.evaluation.shift import (
    References,
    ScoredPhotos,
    approximate_t_cdf,
    estimate_shift_p_value,
)

SIMILARITIES = torch.tensor(
    [
        [1.0, 0.8, 0.6, 0.4],
        [0.8, 1.0, 0.5, 0.3],
        [0.6, 0.5, 1.0, 0.7],
        [0.4, 0.3, 0.7, 1.0],
    ]
)
LABELS = torch.tensor([0, 0, 1, 1])
FIRST = [0.2, 0.2, 0.4, 0.6]  # distance to the nearest photo


def draw(number, seed, shift=0.0, labels=None):
    """Draw scores of three classes, with other means in each class."""
    generator = torch.Generator().manual_seed(seed)
    if labels is None:
        labels = torch.arange(number) % 3
    noise = torch.randn(number, 2, generator=generator)
    return ScoredPhotos(labels, labels[:, None] + noise - shift)


def test_p_value_is_low_if_photos_are_less_similar():
    training = draw(60, seed=0)
    assert estimate_shift_p_value(training, draw(30, 1, shift=2)) < 0.001
    assert estimate_shift_p_value(training, draw(30, 1, shift=-2)) > 0.99


@pytest.mark.parametrize('labels', [None, torch.zeros(30, dtype=int)])
@pytest.mark.parametrize('per_class', [3, 20])
def test_alarms_are_rare_if_only_shares_of_classes_differ(labels, per_class):
    number = 3 * per_class
    p_values = torch.tensor(
        [
            estimate_shift_p_value(
                draw(number, i), draw(30, 999 - i, 0, labels)
            )
            for i in range(200)
        ]
    )
    assert (p_values < 0.05).float().mean() <= 0.06
    assert 0.3 < p_values.mean() < 0.7


def test_each_score_lowers_the_p_value():
    training, new = draw(60, seed=0), draw(60, seed=1)
    for column in (0, 1):
        scores = new.scores.clone()
        scores[:, column] -= 2
        lower = ScoredPhotos(new.predicted, scores)
        assert estimate_shift_p_value(training, lower) < 0.01


def test_p_value_is_1_without_a_common_class():
    training = draw(9, 0, labels=torch.zeros(9, dtype=int))
    new = draw(9, 1, shift=9, labels=torch.ones(9, dtype=int))
    assert estimate_shift_p_value(training, new) == 1


def test_p_value_is_1_if_scores_do_not_vary():
    training, new = draw(9, 0), draw(30, 1, shift=9)
    training.scores[:, 1] = 1
    assert estimate_shift_p_value(training, new) == 1


def test_large_shift_of_a_single_class_is_noticed_with_three_photos():
    labels = torch.zeros(12, dtype=int)
    new = draw(12, 1, shift=20, labels=labels)
    assert estimate_shift_p_value(draw(9, 0), new) < 0.01


def test_training_photos_are_scored_by_other_groups():
    references = References(LABELS, torch.tensor([0, 1, 2, 2]))
    distance, ratio = references.score_training(SIMILARITIES).exp().unbind(1)
    assert distance.tolist() == pytest.approx([1 / x for x in FIRST])
    # without class 1 in another group, its distance is 2
    second = [0.4, 0.5, 2, 2]
    expected = [y / x for x, y in zip(FIRST, second, strict=True)]
    assert ratio.tolist() == pytest.approx(expected)


def test_new_photos_omit_each_group_of_the_predicted_class():
    references = References(LABELS, torch.arange(4))
    new = torch.tensor([[0.9, 0.7, 0.5, 0.1]])
    scores = references.score_new(new, torch.tensor([0])).exp()[0]
    distance = (0.3 * 0.1) ** 0.5  # geometric mean
    assert scores.tolist() == pytest.approx([1 / distance, 0.5 / distance])
    grouped = References(LABELS, torch.tensor([0, 0, 1, 1]))
    scores = grouped.score_new(new, torch.tensor([0])).exp()[0]
    assert scores.tolist() == pytest.approx([1 / 0.5, 2 / 0.5])


def test_scores_are_finite_if_nothing_can_be_compared():
    references = References(LABELS, torch.zeros(4, dtype=int))
    assert references.score_training(SIMILARITIES).isfinite().all()
    equal = References(LABELS, torch.arange(4))
    assert equal.score(torch.ones(2, 4)).isfinite().all()


@pytest.mark.parametrize('degrees', [2, 5, 30])
def test_approximate_t_cdf_is_close_to_scipy(degrees):
    for share in (0.01, 0.05, 0.9):
        value = student.ppf(share, degrees)
        assert approximate_t_cdf(value, degrees) == pytest.approx(
            share, abs=0.002
        )
