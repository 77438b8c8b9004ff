# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy and class counts from labels, in small and simulated folders."""

from dataclasses import replace

import numpy as np
import pytest

from mmclca.errors import Error
from mmclca.survey import Survey, draw_sample, estimate_survey, stratify
from mmclca.survey.estimate import (
    STRENGTH,
    UNIFORM_SHARE,
    assign_wrong,
    compute_confusion_prior,
    simulate,
)


def make_folder(rng, number=150, classes=3, shift=0.0):
    """Return probabilities, and labels with these probabilities.

    With a shift, labels are less certain than the scores.
    """
    logits = 2 * rng.standard_normal((number, classes))
    probabilities = np.exp(logits)
    probabilities /= probabilities.sum(1, keepdims=True)
    true = np.exp(logits * (1 - shift))
    true /= true.sum(1, keepdims=True)
    labels = [rng.choice(classes, p=row) for row in true]
    return probabilities, np.array(labels)


def make_survey(probabilities, labels, positions):
    size = probabilities.shape[1]
    return Survey(
        probabilities,
        np.array(positions),
        labels[np.array(positions)],
        10 * np.eye(size, dtype=int) + 1,
    )


def test_interval_is_a_point_if_all_photos_are_labeled():
    probabilities, labels = make_folder(np.random.default_rng(0), 30)
    labels[:2] = 3  # none of the classes
    survey = make_survey(probabilities, labels, range(30))
    estimate = estimate_survey(survey)
    accuracy = (probabilities.argmax(1) == labels).mean()
    values = estimate.accuracy
    assert values.low == values.value == values.high == accuracy
    counts = [(x.low, x.value, x.high) for x in estimate.counts]
    expected = np.bincount(labels, minlength=4)
    assert counts == [(x, x, x) for x in expected]


def test_simulated_folders_keep_labels_and_number_of_photos():
    rng = np.random.default_rng(1)
    probabilities, labels = make_folder(rng)
    survey = make_survey(probabilities, labels, range(0, 150, 5))
    counts, correct = simulate(survey, 300, rng)
    assert (counts.sum(1) == 150).all()
    assert (counts >= np.bincount(survey.labels, minlength=4)).all()
    is_correct = survey.predicted[survey.positions] == survey.labels
    assert correct.min() >= is_correct.sum()
    assert correct.max() <= 150 - (~is_correct).sum()


@pytest.mark.parametrize('shift, bias', [(0, 0.02), (0.6, 0.06)])
def test_intervals_contain_the_truth_in_most_simulated_surveys(shift, bias):
    rng = np.random.default_rng(2)
    inside, class_inside, errors = [], [], []
    for seed in range(60):
        probabilities, labels = make_folder(rng, shift=shift)
        positions = draw_sample(stratify(probabilities, 30), 30, seed)
        survey = make_survey(probabilities, labels, positions)
        estimate = estimate_survey(survey, seed=seed, num_samples=400)
        accuracy = (probabilities.argmax(1) == labels).mean()
        values = estimate.accuracy
        inside.append(values.low <= accuracy <= values.high)
        errors.append(values.value - accuracy)
        counts = np.bincount(labels, minlength=4)
        class_inside += [
            x.low <= count <= x.high
            for x, count in zip(estimate.counts, counts, strict=True)
        ]
    assert np.mean(inside) > 0.85
    assert np.mean(class_inside) > 0.9
    # the prior draws toward the scores; the standard error is about 0.01
    assert abs(np.mean(errors)) < bias


def test_interval_is_narrower_with_more_labels():
    rng = np.random.default_rng(3)
    probabilities, labels = make_folder(rng, 300)
    widths = []
    for number in (10, 30, 100, 290):
        positions = draw_sample(stratify(probabilities, number), number)
        survey = make_survey(probabilities, labels, positions)
        accuracy = estimate_survey(survey).accuracy
        widths.append(accuracy.high - accuracy.low)
    assert widths == sorted(widths, reverse=True)


def test_labels_correct_an_overconfident_model():
    rng = np.random.default_rng(4)
    probabilities = np.full((200, 2), [0.98, 0.02])
    labels = rng.permutation(np.repeat([0, 1], 100))
    survey = make_survey(probabilities, labels, range(60))
    estimate = estimate_survey(survey)
    assert estimate.accuracy.high < 0.75
    assert estimate.counts[1].low > 50


def test_unknown_photos_are_counted_and_have_an_upper_bound_without_label():
    probabilities, labels = make_folder(np.random.default_rng(5))
    survey = make_survey(probabilities, labels, range(20))
    none = estimate_survey(survey).counts[-1]
    assert none.low == 0 < none.high < 60
    strange = replace(survey, labels=np.where(survey.labels, 3, 0))
    assert estimate_survey(strange).counts[-1].low > 20


def test_assigned_classes_follow_the_labels():
    probabilities = np.tile([0.6, 0.2, 0.2], (50, 1))
    labels = np.array([1] * 30 + [0] * 20)
    survey = make_survey(probabilities, labels, range(30))
    wrong = np.tile([10, 0, 0], (500, 1))
    assigned = assign_wrong(survey, wrong, np.random.default_rng(0))
    assert (assigned.sum(1) == 10).all()
    assert (assigned[:, 0] == 0).all()
    assert assigned[:, 1].mean() > 9


def test_confusion_prior_averages_confusions_and_probabilities():
    probabilities = np.array([[0.5, 0.4, 0.1], [0.7, 0.2, 0.1]])
    confusions = np.array([[9, 0, 3], [0, 9, 0], [0, 0, 9]])
    survey = Survey(probabilities, np.array([0]), np.array([0]), confusions)
    prior = compute_confusion_prior(survey)
    # errors are (0.6, 0.2) by the probabilities, (0, 3) by the confusions
    mixed = np.array([0, 0.75 / 2, 1.25 / 2])
    uniform = np.array([0, 0.5, 0.5])
    expected = (1 - UNIFORM_SHARE) * mixed + UNIFORM_SHARE * uniform
    assert prior[0] == pytest.approx(STRENGTH * expected)
    # neither a prediction nor a confusion
    assert prior[2] == pytest.approx(STRENGTH * np.array([0.5, 0.5, 0]))


@pytest.mark.parametrize(
    'part, message',
    [
        (dict(positions=np.array([0, 0])), 'each once'),
        (dict(positions=np.array([0, 99])), 'from 0 to 1'),
        (dict(labels=np.array([0])), 'labels must be 2'),
        (dict(labels=np.array([0, 4])), 'from 0 to 3'),
        (dict(confusions=np.eye(2)), 'expected .3, 3.'),
    ],
)
def test_survey_is_refused_if_parts_do_not_fit(part, message):
    probabilities = np.full((2, 3), 1 / 3)
    survey = make_survey(probabilities, np.array([0, 1]), [0, 1])
    with pytest.raises(Error, match=message):
        estimate_survey(replace(survey, **part))
