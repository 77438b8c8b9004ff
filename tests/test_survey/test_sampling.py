# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Strata by predicted class and score, and random samples."""

import numpy as np
import pytest

from mmclca.errors import Error
from mmclca.survey import draw_sample, stratify
from mmclca.survey.sampling import allocate


def make_probabilities(number=200, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(classes, 0.4), number)


def test_strata_are_neighbors_by_class_then_score():
    probabilities = make_probabilities()
    strata = stratify(probabilities, 20)
    order = np.lexsort((probabilities.max(1), probabilities.argmax(1)))
    assert (np.diff(strata[order]) >= 0).all()
    assert {*strata} == {*range(1, 11)}


def test_strata_have_equal_sums_of_deviations():
    probabilities = make_probabilities(2000)
    strata = stratify(probabilities, 20)
    errors = np.clip(1 - probabilities.max(1), 0.03, 0.97)
    sums = np.bincount(strata, np.sqrt(errors * (1 - errors)))[1:]
    assert sums == pytest.approx(sums.mean(), rel=0.02)


@pytest.mark.parametrize('number', [1, 10, 15, 100])
def test_strata_are_numbered_without_gaps_if_photos_are_few(number):
    strata = stratify(make_probabilities(7), number)
    assert {*strata} == {*range(1, strata.max() + 1)}


def test_allocation_is_even_and_leaves_the_remainder_to_large_strata():
    assert allocate(np.array([1, 3, 9]), 8).tolist() == [1, 3, 4]
    assert allocate(np.array([5, 5, 9]), 7).tolist() == [2, 2, 3]
    assert allocate(np.array([2, 1]), 9).tolist() == [2, 1]


def test_sample_has_each_photo_once_and_all_strata():
    strata = stratify(make_probabilities(), 21)
    sample = draw_sample(strata, 21)
    assert len({*sample}) == 21
    assert {*strata[sample]} == {*strata}
    assert draw_sample(strata, 21).tolist() == sample.tolist()
    assert draw_sample(strata, 21, seed=1).tolist() != sample.tolist()
    assert sorted(draw_sample(strata, 999)) == [*range(200)]


def test_photos_of_a_stratum_are_drawn_equally_often():
    strata = np.array([1] * 4 + [2] * 8)
    samples = [draw_sample(strata, 4, seed) for seed in range(4000)]
    shares = np.bincount(np.concatenate(samples)) / len(samples)
    assert shares[:4] == pytest.approx(0.5, abs=0.04)
    assert shares[4:] == pytest.approx(0.25, abs=0.04)
    # random order: the first photos are a sample, too
    first = np.bincount([x[0] for x in samples]) / len(samples)
    assert first[:4].sum() == pytest.approx(0.5, abs=0.04)


def test_sample_of_no_photo_is_refused():
    with pytest.raises(Error, match='number=0'):
        draw_sample(np.array([1, 1]), 0)
