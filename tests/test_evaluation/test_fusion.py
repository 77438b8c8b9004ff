# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmclca.evaluation.fusion import (
    MIN_PLANTS,
    combine_photos,
    effective_number,
    measure_plants,
)


def simulate(dependence, plants=400, photos=4, signal=0.8):
    """Class scores (1, N, 2) with photos whose noise has this correlation.

    Scores are the exact log-odds of single photos, so that the combination
    with the same dependence is exact, too.
    """
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(plants) % 2
    shared, single = (
        torch.randn(plants, n, generator=generator) for n in (1, photos)
    )
    noise = dependence**0.5 * shared + (1 - dependence) ** 0.5 * single
    evidence = 2 * signal * (signal * (2 * labels[:, None] - 1) + noise)
    scores = torch.stack([torch.zeros_like(evidence), evidence], dim=-1)
    names = [f'plant {i}' for i in range(plants) for _ in range(photos)]
    return scores.view(1, -1, 2), labels.repeat_interleave(photos), names


def test_combination_is_product_or_geometric_mean_at_its_limits():
    probabilities = torch.tensor([[0.7, 0.2, 0.1], [0.5, 0.1, 0.4]])
    product = probabilities.prod(0)
    independent = combine_photos(probabilities.log(), 0).exp()
    assert independent.allclose(product / product.sum())
    mean = product.sqrt()
    dependent = combine_photos(probabilities.log(), 1).exp()
    assert dependent.allclose(mean / mean.sum())


@pytest.mark.parametrize('dependence', [0, 0.3, 1])
def test_single_photo_keeps_its_probabilities(dependence):
    scores = torch.randn(5, 1, 3)
    combined = combine_photos(scores, dependence)
    assert combined.allclose(scores[:, 0].log_softmax(-1), atol=1e-6)
    assert effective_number(1, dependence) == 1


def test_effective_number_is_limited_if_photos_are_dependent():
    assert effective_number(4, 0) == 4
    assert effective_number(4, 1) == 1
    assert effective_number(3, 0.5) == 1.5
    assert effective_number(1e9, 0.25) == pytest.approx(4)


@pytest.mark.parametrize('dependence', [0, 0.3, 0.7])
def test_measured_dependence_is_that_of_simulated_photos(dependence):
    figures = measure_plants(*simulate(dependence, plants=2000))
    assert abs(figures.dependence - dependence) <= 0.1
    assert figures.plants == 2000


def test_photos_gain_accuracy_unless_they_all_tell_the_same():
    one, two, three = measure_plants(*simulate(0.2)).accuracies
    assert one + 0.02 < two and two + 0.01 < three
    same = measure_plants(*simulate(1)).accuracies
    assert max(same) - min(same) < 0.005


def test_accuracies_are_of_the_same_plants():
    scores, labels, names = simulate(0.2, plants=30)
    is_kept = torch.ones(len(labels), dtype=torch.bool)
    is_kept[: 4 * (30 - MIN_PLANTS)] = False
    is_kept[: 4 * (30 - MIN_PLANTS) : 4] = True
    is_kept[1 : 4 * (30 - MIN_PLANTS) : 4] = True
    chosen = torch.where(is_kept)[0]
    figures = measure_plants(
        scores[:, chosen], labels[chosen], [names[i] for i in chosen]
    )
    assert len(figures.accuracies) == 3 and figures.plants == MIN_PLANTS
    # others have two photos
    few = chosen[: -4 * MIN_PLANTS + 8]
    figures = measure_plants(
        scores[:, few], labels[few], [names[i] for i in few]
    )
    assert len(figures.accuracies) == 2


def test_photos_that_were_not_tested_are_left_out():
    scores, labels, names = simulate(0.3, plants=40)
    untested = torch.cat(
        [scores, torch.full_like(scores[:, :8], torch.nan)], 1
    )
    figures = measure_plants(
        untested,
        torch.cat([labels, labels[:8]]),
        [*names, *['untested'] * 4, *['untested too'] * 4],
    )
    assert figures == measure_plants(scores, labels, names)


def test_nothing_is_measured_if_groups_are_not_plants_or_too_few():
    scores, labels, names = simulate(0.3, plants=40)
    days = [f'day {i % 20}' for i in range(160)]
    assert measure_plants(scores, labels, days) is None
    assert measure_plants(scores, labels, [*map(str, range(160))]) is None
    few = 4 * (MIN_PLANTS - 1)
    assert measure_plants(scores[:, :few], labels[:few], names[:few]) is None
