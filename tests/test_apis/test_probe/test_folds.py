# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from mmclca.apis.probe import (
    ClassifierSettings,
    CurvePoint,
    FoldSettings,
    LabeledFeatures,
    ProbeSetting,
    fit_linear,
    folds,
    forecast,
    learning_curve,
    out_of_fold,
)
from mmclca.apis.probe.folds import fit_chosen, fit_temperature
from mmclca.apis.probe.likelihood import best_setting
from mmclca.apis.probe.settings import CLASSIFIERS
from mmclca.datasets.grouped_splits import GroupedSplits


def drawn(counts, noise=1.0, channels=8):
    """Noisy features around class means, and labels."""
    labels = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    means = torch.randn(len(counts), channels)
    return means[labels] + noise * torch.randn(len(labels), channels), labels


def spread(rows):
    """Mean squared distance between rows and their mean."""
    return float((rows - rows.mean(0)).square().sum(1).mean())


def test_out_of_fold_scores_images_outside_the_training_fold():
    features, labels = drawn([4, 5, 6])
    data = LabeledFeatures(features, labels, 3)
    found = out_of_fold(data, folds=FoldSettings(4, repeats=1))
    folds = GroupedSplits(labels).folds(4, 0)
    for (train, test), setting in zip(folds, found.settings, strict=True):
        data = LabeledFeatures(features[train], labels[train], 3)
        # the penalty of all images
        alpha = setting.alpha * spread(features) / spread(features[train])
        fitted = fit_linear(data, setting=setting._replace(alpha=alpha))
        expected = fitted.scores(features[test]) / found.temperature
        assert torch.allclose(found.logits[0, test], expected, atol=1e-4)


def test_accuracy_recalls_and_probabilities_omit_untested_classes():
    features, labels = drawn([1, 2, 20, 30], noise=0.8)
    data = LabeledFeatures(features, labels, 4)
    found = out_of_fold(data, folds=FoldSettings(repeats=3))
    assert found.untested == [0] and found.independent == 52
    assert found.folds == 5 and found.accuracy.shape == (3,)
    right = found.logits.argmax(2) == labels
    for label in (1, 2, 3):
        share = right[:, labels == label].float().mean()
        assert torch.isclose(found.recalls()[label], share)
    assert found.macro_recall == pytest.approx(
        float(found.recalls()[1:].mean())
    )
    probabilities = found.probabilities()
    assert probabilities[0].isnan().all()
    assert torch.allclose(probabilities[1:].sum(1), torch.ones(52))


def test_groups_stay_in_one_fold_and_count_once():
    """Images of one plant are near-duplicates."""
    plants = torch.arange(24)
    labels = (plants % 4).repeat_interleave(3)
    features = torch.randn(24, 64).repeat_interleave(3, 0)
    groups = plants.repeat_interleave(3).tolist()
    parted = out_of_fold(LabeledFeatures(features, labels, 4))
    whole = out_of_fold(LabeledFeatures(features, labels, 4, groups))
    assert parted.accuracy.min() > 0.9 and whole.accuracy.max() < 0.6
    assert parted.independent == 72 and whole.independent == 24


def test_groups_may_span_classes():
    """Observers with photos of several classes, the last one of no own."""
    features, labels = drawn([6] * 4)
    groups = [*'abcabc' * 2, *'abcdef' * 2]
    found = out_of_fold(LabeledFeatures(features, labels, 4, groups))
    for train, test in found.splits:
        assert not {groups[i] for i in train} & {groups[i] for i in test}
    curve = learning_curve(found, sizes=[1])
    assert curve[-1].accuracy == float(found.accuracy.mean())


def test_interval_contains_the_accuracy_on_new_images():
    """In at least 90 of 100 cases, without being far too wide."""
    found = []
    for _ in range(20):
        features, labels = drawn([205] * 3, noise=1.8)
        few = torch.arange(615).reshape(3, 205)[:, :5].flatten()
        data = LabeledFeatures(features[few], labels[few], 3)
        probe = out_of_fold(data, folds=FoldSettings(3, repeats=2))
        fitted = fit_linear(data, setting=probe.setting)
        right = fitted.scores(features).argmax(1) == labels
        low, high = probe.interval()
        found.append((right.float().mean() - low) / (high - low))
    inside = [(0 <= x <= 1, 0.35 <= x <= 0.65) for x in found]
    whole, middle = np.sum(inside, 0)
    assert whole >= 18 > middle


def test_one_image_per_class_gives_no_estimate():
    features, labels = drawn([1, 1, 1])
    data = LabeledFeatures(features, labels, 3)
    found = out_of_fold(data)
    assert found.accuracy.isnan().all() and found.interval() == (0, 1)
    assert found.untested == [0, 1, 2] and found.folds == 0
    assert learning_curve(found) == []
    fitted = fit_linear(data, setting=found.setting)
    scores = fitted.scores(features) / found.temperature
    own = scores.softmax(1).diagonal()
    assert ((own > 0.4) & (own < 0.8)).all()  # not confident


def test_many_images_have_one_repeat_and_one_setting(monkeypatch):
    monkeypatch.setattr(folds, 'MAX_REPEATED', 39)
    monkeypatch.setattr(folds, 'MAX_NESTED', 39)
    found = out_of_fold(LabeledFeatures(*drawn([10] * 4), 4))
    assert found.logits.shape == (1, 40, 4) and len(found.splits) == 5
    assert found.settings == 5 * [found.setting]


WEIGHTS = [ProbeSetting(0.3), ProbeSetting(0.3, 0.5), ProbeSetting(0.3, 1.0)]


def scores_of_noise(*levels, images=300):
    """Scores by settings with equal noise at different levels, and labels."""
    labels = torch.arange(images) % 3
    noise = torch.tensor(levels)[:, None, None] * torch.randn(images, 3)
    return [F.one_hot(labels, 3) + noise], [labels]


def test_best_setting_needs_evidence_against_the_prior():
    few = scores_of_noise(1.0, 0.9, 1.0, images=12)
    assert best_setting(*few, WEIGHTS, tested=12) == 0
    clear = scores_of_noise(9.0, 0.1, 9.0, images=12)
    assert best_setting(*clear, WEIGHTS, tested=12) == 1
    # evidence grows with the independent images, not with the repeats
    weak = scores_of_noise(2.0, 1.8, 2.0)
    assert best_setting(*weak, WEIGHTS, tested=300) == 1
    assert best_setting(*weak, WEIGHTS, tested=3) == 0


def test_best_setting_counts_the_scores_in_all_folds():
    (scores,), (labels,) = scores_of_noise(9.0, 0.1, 9.0, images=12)
    folds = scores.split(4, 1), labels.split(4)
    assert best_setting(*folds, WEIGHTS, tested=12) == 1
    assert best_setting([], [], WEIGHTS, tested=0) == 0


def test_best_setting_is_the_first_of_equally_likely_ones():
    """Equal priors, and scores that differ by rounding."""
    alphas = [ProbeSetting(x) for x in (0.3, 0.1, 0.9)]
    for change in (1e-8, -1e-8):
        scores = scores_of_noise(9.0, 0.1, 0.1 + change, images=12)
        assert best_setting(*scores, alphas, tested=12) == 1


def test_best_setting_uses_more_than_the_accuracy():
    """Equal accuracies, but one setting is sure where it is wrong."""
    labels = torch.zeros(40, dtype=torch.long)
    right = torch.arange(40) % 4 > 0
    sure = torch.where(right, 1.0, -1.0)
    doubtful = torch.where(right, 1.0, -0.1)
    scores = torch.stack([sure, doubtful])
    scores = torch.stack([scores, torch.zeros_like(scores)], -1)
    assert best_setting([scores], [labels], WEIGHTS[:2], tested=40) == 1
    assert best_setting([scores.flip(0)], [labels], WEIGHTS[:2], 40) == 0


def test_strength_grows_with_noise():
    """One of 150 channels depends on the class."""
    labels = torch.arange(200) % 2
    features = torch.randn(200, 150)
    features[:, 0] += 2.5 * labels
    few = torch.cat([features[:, :1]] * 3, 1)
    twice = FoldSettings(repeats=2)
    noisy, clear = (
        out_of_fold(LabeledFeatures(x, labels, 2), folds=twice)
        for x in (features, few)
    )
    assert noisy.setting.alpha > 0.3 and clear.setting.alpha == 0.3


def test_fit_temperature_minimizes_cross_entropy():
    logits = 7 * torch.randn(2, 300, 5)
    labels = torch.distributions.Categorical(logits=logits[0] / 7).sample()
    found = fit_temperature(logits[:1], labels, 300)
    assert found == pytest.approx(7, rel=0.2)

    def loss(temperature):
        return F.cross_entropy(logits[0] / temperature, labels)

    assert loss(found) < min(loss(0.7 * found), loss(1.4 * found))


def test_fit_temperature_limits_confidence_for_few_images():
    logits = torch.eye(4)[None].repeat(1, 3, 1)
    found = fit_temperature(logits, torch.arange(4).repeat(3), 12)
    sure = (torch.eye(4)[0] / found).softmax(0)[0]
    assert 0.85 < sure < 0.97


@pytest.mark.parametrize(
    'counts, parts, group, weights, sizes',
    [
        ([12] * 5, 5, 1, 'balanced', [1, 2, 3, 5, 10]),
        ([3] * 6, 3, 1, None, [1, 2]),
        ([2] * 6, 5, 1, None, [1]),
        ([1, 2, 8, 10, 30], 5, 1, 'balanced', [1, 2, 3, 5, 6]),
        ([12] * 5, 3, 2, None, [1, 2, 3, 4]),
    ],
)
def test_learning_curve_ends_with_the_cross_validated_accuracy(
    counts, parts, group, weights, sizes
):
    features, labels = drawn(counts, noise=1.5)
    groups = [i // group for i in range(len(labels))]
    data = LabeledFeatures(features, labels, len(counts), groups)
    classifier = ClassifierSettings(class_weights=weights)
    found = out_of_fold(data, classifier, FoldSettings(parts))
    curve = learning_curve(found)
    assert [point.photos for point in curve] == sizes
    last, interval = curve[-1], (curve[-1].low, curve[-1].high)
    assert last.accuracy == float(found.accuracy.mean())
    assert interval == found.interval()


def test_learning_curve_tests_the_same_images_at_each_size():
    features, labels = drawn([8] * 5 + [1], noise=1.5)
    data = LabeledFeatures(features, labels, 6)
    found = out_of_fold(data, folds=FoldSettings(4, repeats=2))
    curve = learning_curve(found, sizes=(2, 5, 9))
    assert [point.photos for point in curve] == [2, 5, 6]
    right = []
    for i, (train, test) in enumerate(found.splits):
        units = GroupedSplits(labels[train])
        some = train[units.draw(np.full(6, 2), i)]
        data = LabeledFeatures(features[some], labels[some], 6)
        fitted = fit_linear(data, setting=found.settings[i])
        scores = fitted.scores(features[test])
        right += (scores.argmax(1) == labels[test]).tolist()
    assert curve[0].accuracy == pytest.approx(np.mean(right))


def law(*numbers):
    """Points with an error proportional to 1 / sqrt(images)."""
    points = ((number, 1 - 0.4 / number**0.5) for number in numbers)
    return curve_of(*((n, x, x - 0.1, x + 0.01) for n, x in points))


def curve_of(*rows):
    return [CurvePoint(*row) for row in rows]


@pytest.mark.parametrize('numbers', [(1, 2), (1, 2, 3, 5)])
def test_forecast_follows_a_power_law_from_the_last_point(numbers):
    curve = law(*numbers)
    found, last = forecast(curve, 2), curve[-1]
    (true,) = law(2 * numbers[-1])
    assert found.photos == true.photos
    assert found.accuracy == pytest.approx(true.accuracy)
    assert found.low == last.low and last.high < found.high <= 1


def test_forecast_limits_the_gain():
    assert forecast(law(1), 2) is None
    falling = curve_of((1, 0.9, 0.8, 0.95), (2, 0.8, 0.7, 0.9))
    assert forecast(falling, 2).accuracy == 0.8
    perfect = curve_of((1, 1.0, 0.9, 1.0), (2, 1.0, 0.9, 1.0))
    assert forecast(perfect, 2).accuracy == 1
    # at most half of the error
    steep = curve_of((1, 0.6, 0.5, 0.7), (2, 0.96, 0.9, 0.98))
    assert forecast(steep, 2).accuracy == pytest.approx(0.98)


def test_all_views_are_fitted_and_the_first_is_tested():
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(12) % 3
    views = torch.randn(12, 2, 40, generator=generator)
    views[:, 0] += F.one_hot(labels, 40)
    data = LabeledFeatures(views, labels, 3)
    fitted = fit_linear(data)
    rows = views.flatten(0, 1), labels.repeat_interleave(2)
    expected = fit_linear(LabeledFeatures(*rows, 3))
    for one, other in zip(fitted, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    found = out_of_fold(data, folds=FoldSettings(3, repeats=1))
    train, test = found.splits[0]
    rows = views[train].flatten(0, 1), labels[train].repeat_interleave(2)
    logits = found.logits[0, test] * found.temperature
    ratio = spread(views.flatten(0, 1)) / spread(rows[0])
    strengths = [ratio * alpha for alpha in CLASSIFIERS['ridge'].single]
    data = LabeledFeatures(*rows, 3)
    known = [fit_linear(data, setting=ProbeSetting(s)) for s in strengths]
    scores = [one.scores(views[test, 0]) for one in known]
    assert any(torch.allclose(logits, x, atol=1e-4) for x in scores)


def test_second_subset_is_averaged_with_evidence_for_it():
    """Two feature subsets: noise, and columns with the classes."""
    labels = torch.arange(40) % 4
    features = torch.randn(40, 90)
    features[:, 80:84] += 4 * F.one_hot(labels, 4)
    subsets = [torch.arange(80), torch.arange(80, 90)]
    data = LabeledFeatures(features, labels, 4, feature_subsets=subsets)
    found, fitted = fit_chosen(data)
    assert found.setting.late_cls_weight == 1
    assert found.accuracy.mean() > 0.8
    assert not fitted.weight[:, :80].any()
    curve = learning_curve(found)
    assert curve[-1].accuracy == float(found.accuracy.mean())
    swapped = out_of_fold(replace(data, feature_subsets=subsets[::-1]))
    assert swapped.setting.late_cls_weight == 0


@pytest.mark.parametrize('weight', [0.0, 0.25, 1.0])
def test_feature_subsets_average_the_scores_of_two_classifiers(weight):
    features, labels = drawn([5, 5], channels=30)
    one, other = torch.arange(25), torch.tensor([1, 28, 29])
    subsets = [one, other]
    data = LabeledFeatures(features, labels, 2, feature_subsets=subsets)
    found = fit_linear(data, setting=ProbeSetting(0.3, weight))
    second = CLASSIFIERS['ridge'].second
    scores = []
    for columns, alpha in zip(subsets, (0.3, second), strict=True):
        part = LabeledFeatures(features[:, columns], labels, 2)
        fitted = fit_linear(part, setting=ProbeSetting(alpha))
        scores.append(fitted.scores(part.features))
    expected = torch.lerp(*scores, weight)
    assert torch.allclose(found.scores(features), expected, atol=1e-4)


def test_level_accuracies_by_hand():
    names, coarse_of = 'abc', dict(a='x', b='y', c='x')
    nan = torch.nan
    # correct; wrong class within x; wrong coarse class; not tested
    rows = [[3, 0, 1], [1, 0, 2], [1, 3, 2], [nan] * 3]
    data = LabeledFeatures(torch.eye(4), [0, 0, 2, 1], 3)
    found = replace(out_of_fold(data), logits=torch.tensor([rows]))
    shares = found.level_accuracies(names, coarse_of)
    assert shares == pytest.approx((2 / 3, 2 / 3))
    with pytest.raises(ValueError, match='such as c'):
        found.level_accuracies(names, dict(a='x', b='y'))
