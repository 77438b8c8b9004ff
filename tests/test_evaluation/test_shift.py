# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Two-sample test of new photos against the training photos."""

import pytest
import torch

from mmclca.evaluation.shift import (
    ScoredPhotos,
    compute_ranks,
    estimate_shift_p_value,
)
from mmclca.models.heads import nearest_of_other_groups


def draw(number, seed, shift=0.0, labels=None):
    """Draw scores of three classes; similarities differ between classes."""
    generator = torch.Generator().manual_seed(seed)
    if labels is None:
        labels = torch.arange(number) % 3
    logits = torch.randn(number, 3, generator=generator)
    logits[torch.arange(number), labels] += 5
    noise = torch.randn(number, generator=generator)
    return ScoredPhotos(logits.softmax(1), labels + noise - shift)


def test_p_value_is_low_if_photos_are_less_similar():
    training = draw(60, seed=0)
    assert estimate_shift_p_value(training, draw(30, 1, shift=2)) < 0.001
    assert estimate_shift_p_value(training, draw(30, 1, shift=-2)) > 0.99


@pytest.mark.parametrize('labels', [None, torch.zeros(30, dtype=int)])
def test_alarms_are_rare_if_only_shares_of_classes_differ(labels):
    p_values = torch.tensor(
        [
            estimate_shift_p_value(draw(60, i), draw(30, 999 - i, 0, labels))
            for i in range(200)
        ]
    )
    assert (p_values < 0.05).float().mean() <= 0.05
    assert 0.3 < p_values.mean() < 0.7


def test_p_value_is_low_if_photos_are_less_certain():
    training, new = draw(60, seed=0), draw(60, seed=1)
    less_certain = ScoredPhotos(
        new.probabilities.sqrt(), training.similarities
    )
    assert estimate_shift_p_value(training, less_certain) < 0.01


def test_p_value_is_1_without_a_common_class():
    training = draw(9, 0, labels=torch.zeros(9, dtype=int))
    training.probabilities[:] = torch.tensor([0.8, 0.1, 0.1])
    new = draw(9, 1, shift=9)
    new.probabilities[:] = torch.tensor([0.1, 0.8, 0.1])
    assert estimate_shift_p_value(training, new) == 1


def test_impossible_classes_are_ignored():
    training, new = draw(60, seed=0), draw(30, seed=1, shift=2)
    for scores in (training, new):
        scores.probabilities[:, 2] = torch.nan
    assert estimate_shift_p_value(training, new) < 0.001


def test_equal_values_share_their_mean_rank():
    ranks = compute_ranks(torch.tensor([3.0, 1.0, 3.0, 2.0]))
    assert ranks.tolist() == [2.5, 0, 2.5, 1]


def test_photos_are_compared_with_other_groups_only():
    features = torch.tensor([[1.0, 0], [2, 0], [0, 1], [1, 1]])
    groups = torch.tensor([0, 0, 1, 2])
    images = torch.tensor([0, 3])
    similarities = nearest_of_other_groups(features, groups, images)
    assert similarities.tolist() == pytest.approx([0.5**0.5] * 2)
    alone = nearest_of_other_groups(features, groups * 0, images)
    assert alone.tolist() == [-torch.inf] * 2
