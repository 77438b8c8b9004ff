# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Scores for rows that are left out, compared with explicit fits."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from mmclca.apis.probe import (
    ClassifierSettings,
    LabeledFeatures,
    classifiers,
    leave_out,
    ridge,
    solvers,
)
from mmclca.apis.probe.classifiers import ProbeData
from mmclca.apis.probe.fold_scores import prepare_fold_scores
from mmclca.apis.probe.settings import CLASSIFIERS
from mmclca.apis.probe.subset_scores import SubsetScores
from mmclca.datasets.grouped_splits import GroupedSplits
from mmclca.errors import Error

ALPHAS = 0.03, 0.3, 3.0


def draw(number, width, classes=3, seed=0):
    """Rows with random features, classes and weights."""
    generator = torch.Generator().manual_seed(seed)
    options = dict(generator=generator, dtype=torch.float64)
    labels = torch.arange(number) % classes
    features = torch.randn(number, width, **options) + 5
    features[:, :classes] += F.one_hot(labels, classes)
    targets = F.one_hot(labels, classes).double()
    weights = 0.2 + torch.rand(number, 1, **options)
    return ridge.WeightedRows(features, targets, weights)


def find_penalty(rows, alpha):
    """Penalty of all rows, by its definition."""
    distances = rows.center().features.square().sum(1, keepdim=True)
    return float(alpha * (rows.weights * distances).sum() / rows.weights.sum())


def score_explicitly(rows, penalty, kept, tested):
    """Solve the normal equations with a column of ones."""
    ones = torch.ones(len(rows.features), 1, dtype=torch.float64)
    inputs = torch.cat([rows.features, ones], 1)
    train = inputs[kept] * rows.weights[kept]
    matrix = train.T @ inputs[kept]
    matrix.diagonal()[:-1] += penalty
    solution = torch.linalg.solve(matrix, train.T @ rows.targets[kept])
    return inputs[tested] @ solution


def positions_without(number, *left_out):
    mask = torch.ones(number, dtype=torch.bool)
    mask[torch.cat(left_out)] = False
    return torch.where(mask)[0]


FORMS = (
    leave_out.ResidualMatrices,
    leave_out.RowMoments,
    leave_out.InnerProducts,
)


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize(
    'number, width, size', [(12, 40, 1), (30, 31, 7), (40, 9, 11), (60, 4, 25)]
)
def test_leave_out_equals_explicit_fits(number, width, size, form):
    """Also if rows are left out in turn."""
    rows = draw(number, width)
    order = torch.randperm(number, generator=torch.Generator().manual_seed(1))
    first, second = order[:size], order[size : 2 * size]
    regressions = form.from_centered(rows.center(), ALPHAS)
    by_first = regressions.scores(first)
    in_turn = regressions.without(first).scores(second)
    for i, alpha in enumerate(ALPHAS):
        penalty = find_penalty(rows, alpha)
        kept = positions_without(number, first)
        expected = score_explicitly(rows, penalty, kept, first)
        assert torch.allclose(by_first[i], expected, rtol=0, atol=1e-8)
        kept = positions_without(number, first, second)
        expected = score_explicitly(rows, penalty, kept, second)
        assert torch.allclose(in_turn[i], expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    'number, width, form',
    [
        (30, 10, leave_out.ResidualMatrices),
        (31, 10, leave_out.RowMoments),
        (20, 20, leave_out.ResidualMatrices),
        (41, 20, leave_out.RowMoments),
        (41, 50, leave_out.InnerProducts),
    ],
)
def test_leave_out_selects_the_smaller_form(number, width, form, monkeypatch):
    monkeypatch.setattr(leave_out, 'MAX_RESIDUAL_ROWS', 40)
    rows = draw(number, width).center()
    assert isinstance(leave_out.leave_out(rows, ALPHAS), form)


@pytest.mark.parametrize('form', FORMS)
def test_single_precision_is_close_if_there_are_many_rows(form, monkeypatch):
    rows = draw(60, 200).center()
    exact = form.from_centered(rows, ALPHAS).scores(torch.arange(12))
    monkeypatch.setattr(leave_out, 'MAX_DOUBLE_ROWS', 59)
    monkeypatch.setattr(ridge, 'MAX_DOUBLE_PRODUCTS', 59)
    rows = replace(rows, features=rows.features.float())
    single = form.from_centered(rows, ALPHAS).scores(torch.arange(12))
    assert torch.allclose(single.double(), exact, atol=1e-3)


@pytest.mark.parametrize('width', [1, 4])
def test_equal_rows_get_the_mean_of_the_targets(width):
    same = torch.full((6, width), 2.0).double()
    rows = replace(draw(6, 4), features=same)
    scores = leave_out.leave_out(rows.center(), ALPHAS).scores(
        torch.tensor([0])
    )
    mean = (rows.weights * rows.targets)[1:].sum(0) / rows.weights[1:].sum()
    assert torch.allclose(scores, mean.expand(3, 1, 3))
    (fitted,) = ridge.ridge(rows.features, rows.targets, rows.weights, [0.3])
    assert fitted.weight.abs().max() < 1e-6


@pytest.mark.parametrize('width', [5, 90])
@pytest.mark.parametrize('alpha', ALPHAS)
def test_ridge_equals_the_normal_equations(width, alpha):
    rows = draw(40, width)
    (fitted,) = ridge.ridge(rows.features, rows.targets, rows.weights, [alpha])
    every = torch.arange(40)
    penalty = find_penalty(rows, alpha)
    expected = score_explicitly(rows, penalty, every, every)
    scores = fitted.scores(rows.features)
    assert torch.allclose(scores, expected, rtol=0, atol=1e-8)


def make_data(views, weights, has_subsets, groups=None):
    """Images in four classes of several sizes."""
    generator = torch.Generator().manual_seed(views)
    labels = torch.arange(4).repeat_interleave(torch.tensor([4, 6, 9, 13]))
    features = torch.randn(32, views, 50, generator=generator)
    features[..., 30:34] += 2 * F.one_hot(labels, 4)[:, None]
    # overlapping, as in the head of fit
    subsets = [torch.arange(40), torch.arange(30, 50)] * has_subsets
    data = LabeledFeatures(features, labels, 4, groups, subsets)
    return ProbeData.from_features(
        data, ClassifierSettings(class_weights=weights)
    )


@pytest.fixture(params=['few rows', 'many rows', 'long rows'])
def rows_in_memory(request, monkeypatch):
    """Use the form for few rows, many rows, or many rows of more features."""
    if request.param != 'few rows':
        monkeypatch.setattr(leave_out, 'MAX_RESIDUAL_ROWS', 20)
    if request.param == 'many rows':
        monkeypatch.setattr(ridge.WeightedRows, 'is_wide', False)
    for module in (ridge, solvers):
        monkeypatch.setattr(module, 'MAX_CHUNK', 9)


@pytest.mark.usefixtures('rows_in_memory')
@pytest.mark.parametrize('has_subsets', [False, True])
@pytest.mark.parametrize('weights', [None, 'balanced'])
@pytest.mark.parametrize('views, group', [(1, 1), (3, 1), (2, 2)])
def test_fold_scores_equal_explicit_fits(views, group, weights, has_subsets):
    groups = [i // group for i in range(32)]
    data = make_data(views, weights, has_subsets, groups)
    fold_scores = prepare_fold_scores(data)
    for train, test in GroupedSplits(data.labels, groups).folds(3, seed=1):
        (inner, inner_test), *_ = data.split_part(train).folds(3, seed=0)
        others = fold_scores.without(test)
        pairs = [
            (fold_scores.scores(test), train, test),
            (
                others.scores(train[inner_test]),
                train[inner],
                train[inner_test],
            ),
        ]
        for scores, kept, tested in pairs:
            expected = score_settings(data, kept, tested)
            assert torch.allclose(scores, expected, rtol=0, atol=1e-8)


def score_settings(data, kept, tested):
    """Average the scores of feature subsets, fitted one by one.

    Balanced weights and their penalty are those of the training images.
    """
    rows, train = data.rows, data.find_rows(kept)
    tested = data.find_rows(tested)[:: data.features.shape[1]]
    penalized = torch.arange(len(rows.features))
    if data.classifier.class_weights:
        weights = rows.weights.clone()
        weights[train] = data.part(kept).rows.weights
        rows, penalized = replace(rows, weights=weights), train
    scores = []
    for setting in data.settings:
        total = 0
        alphas = setting.alpha, CLASSIFIERS['ridge'].second
        for columns, share, alpha in zip(
            data.feature_subsets, setting.subset_weights, alphas, strict=False
        ):
            part = replace(rows, features=rows.features[:, columns])
            penalty = find_penalty(part.select(penalized), alpha)
            total += share * score_explicitly(part, penalty, train, tested)
        scores.append(total)
    return torch.stack(scores)


@pytest.mark.parametrize('weights', [None, 'balanced'])
@pytest.mark.parametrize('views', [1, 2])
def test_subset_scores_equal_a_fit_to_the_subset(views, weights):
    data = make_data(views, weights, has_subsets=True)
    train, test = np.arange(0, 32, 2), np.arange(1, 32, 2)
    scores = SubsetScores(data).scores(train, test, data.settings)
    fitted = data.part(train).fit(data.settings)
    expected = [x.scores(data.features[test, 0]) for x in fitted]
    expected = torch.stack(expected)
    assert torch.allclose(scores, expected, rtol=0, atol=1e-8)


@pytest.mark.usefixtures('rows_in_memory')
@pytest.mark.parametrize('weights', [None, 'balanced'])
def test_features_stay_in_single_precision_if_there_are_many(
    weights, monkeypatch
):
    images = np.arange(0, 32, 3)
    exact = make_data(2, weights, has_subsets=True)
    monkeypatch.setattr(classifiers, 'MAX_DOUBLE_ROWS', 63)
    data = make_data(2, weights, has_subsets=True)
    assert exact.features.dtype == torch.float64
    assert data.features.dtype == torch.float32
    scores = prepare_fold_scores(data).scores(images)
    expected = prepare_fold_scores(exact).scores(images)
    assert torch.allclose(scores, expected, rtol=0, atol=1e-5)
    (fitted,), (other,) = (x.fit(x.settings[-1:]) for x in (data, exact))
    assert torch.allclose(fitted.weight, other.weight, rtol=0, atol=1e-5)
    assert torch.allclose(fitted.bias, other.bias, rtol=0, atol=1e-5)


def test_left_out_labels_do_not_matter():
    data = make_data(views=2, weights=None, has_subsets=True)
    test = np.array([0, 5, 11])
    swapped = data.labels.clone()
    swapped[test] = data.labels[test].roll(1)
    scores = prepare_fold_scores(data).scores(test)
    others = prepare_fold_scores(replace(data, labels=swapped)).scores(test)
    assert torch.allclose(scores, others, atol=1e-8)


def test_probe_data_refuses_labels_without_features():
    with pytest.raises(Error, match='3 images have features, but 2 labels'):
        ProbeData.from_features(
            LabeledFeatures(torch.randn(3, 5), [0, 1], 2), ClassifierSettings()
        )
