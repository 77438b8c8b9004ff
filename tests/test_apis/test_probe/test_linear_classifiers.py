# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Linear classifiers compared with scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge

from mmclca.apis.probe import (
    ClassifierSettings,
    LabeledFeatures,
    ProbeSetting,
    fit_linear,
)
from mmclca.apis.probe.settings import CLASSIFIERS
from mmclca.errors import Error


@pytest.fixture(params=[6, 60])
def data(request):
    """36 features in four classes, fewer or more channels than images."""
    torch.manual_seed(0)
    labels = torch.arange(4).repeat_interleave(torch.tensor([3, 7, 12, 14]))
    means = torch.randn(4, request.param)
    return means[labels] + torch.randn(36, request.param) + 3, labels


@pytest.fixture
def new(data):
    return data[0][:9] + 0.5 * torch.randn_like(data[0][:9])


def fit(features, labels, num_classes, name='ridge', alpha=None, weights=None):
    data = LabeledFeatures(features, labels, num_classes)
    setting = None if alpha is None else ProbeSetting(alpha)
    return fit_linear(data, ClassifierSettings(name, weights), setting)


def spread(features):
    return float((features - features.mean(0)).square().sum(1).mean())


@pytest.mark.parametrize('balanced', [None, 'balanced'])
def test_ridge_equals_scikit_learn(data, new, balanced):
    features, labels = data
    weights = torch.ones(36)
    if balanced:
        weights = 9 / labels.bincount()[labels]
    found = fit(features, labels, 4, 'ridge', 0.3, balanced)
    mean = (weights[:, None] * features).sum(0) / weights.sum()
    scale = (weights * (features - mean).square().sum(1)).sum()
    ridge = Ridge(0.3 * float(scale / weights.sum()))
    ridge.fit(features.double(), np.eye(4)[labels], weights)
    assert np.allclose(found.scores(new), ridge.predict(new), atol=1e-4)


@pytest.mark.parametrize('classes', [2, 4])
def test_logistic_equals_scikit_learn(data, new, classes):
    features, labels = data
    labels = labels % classes
    found = fit(features, labels, classes, 'logistic', 10.0)
    scaled = spread(features) ** 0.5
    model = LogisticRegression(C=10, max_iter=1000, tol=1e-8)
    model.fit(features / scaled, labels)
    expected = model.predict_proba(new / scaled)
    assert np.allclose(found.scores(new).softmax(1), expected, atol=2e-2)


@pytest.mark.parametrize('classifier', CLASSIFIERS)
def test_predictions_are_scale_and_rotation_invariant(data, new, classifier):
    features, labels = data
    turn = torch.linalg.qr(torch.randn(features.shape[1], features.shape[1]))
    ours = fit(features, labels, 4, classifier).scores(new)
    turned = fit(100 * features @ turn.Q, labels, 4, classifier)
    theirs = turned.scores(100 * new @ turn.Q)
    assert ours.argmax(1).tolist() == theirs.argmax(1).tolist()


@pytest.mark.parametrize('classifier', CLASSIFIERS)
def test_one_image_per_class_is_enough(classifier):
    features = torch.eye(3) + 0.1 * torch.randn(3, 3)
    found = fit(features, torch.arange(3), 3, classifier)
    scores = found.scores(features)
    assert scores.isfinite().all() and scores.argmax(1).tolist() == [0, 1, 2]


def test_balanced_weights_move_the_boundary():
    features = torch.tensor([[0.0], [1.0], [1.2], [1.4], [1.6], [1.8]])
    labels = torch.tensor([0, 1, 1, 1, 1, 1])
    plain = fit(features, labels, 2, 'ridge', 30.0)
    balanced = fit(features, labels, 2, 'ridge', 30.0, 'balanced')
    assert plain.scores(features).argmax(1).tolist() == [1] * 6
    assert balanced.scores(features).argmax(1).tolist() == labels.tolist()


@pytest.mark.parametrize(
    'change, term',
    [
        (dict(name='rigde'), 'ridge'),
        (dict(num_classes=5), '1 of 5'),
        (dict(num_classes=3), '0 and 2'),
        (dict(labels=torch.arange(20) % 2, num_classes=2), '20 labels'),
        (dict(weights='even'), 'even'),
    ],
)
def test_fit_linear_refuses_invalid_arguments(data, change, term):
    given = dict(features=data[0], labels=data[1], num_classes=4) | change
    with pytest.raises(Error, match=term):
        fit(**given)
