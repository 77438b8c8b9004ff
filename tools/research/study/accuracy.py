# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Predictions with few photos per class, and their accuracy."""

from functools import cache

import torch
from frozen import read_dataset
from training_subsets import draws, get_labels

from mmclca.apis.probe import (
    ClassifierSettings,
    LabeledFeatures,
    ProbeSetting,
    fit_linear,
)

from .features import load_features
from .readings import STRENGTHS


@cache
def read_labels(name):
    """Return the labels in a dataset, and a mask for test photos."""
    return get_labels(read_dataset(name))


def predict(network, name, readings):
    """Yield the classes predicted for test photos, per training subset.

    Returns one tensor (subsets, photos) per reading.
    """
    labels, is_test = read_labels(name)
    number = 1 + int(labels.max())
    features = torch.from_numpy(load_features(network, name).features)
    for reading in readings:
        columns = reading.select(network)
        classifier = ClassifierSettings(reading.classifier)
        setting = ProbeSetting(STRENGTHS[reading.classifier])
        tested = features[is_test][:, columns].float()
        classes = []
        for subset in draws(labels, ~is_test, reading.count):
            training = features[subset][:, columns].float()
            data = LabeledFeatures(training, labels[subset], number)
            fitted = fit_linear(data, classifier, setting)
            classes.append(fitted.scores(tested).argmax(1))
        yield torch.stack(classes)


@cache
def predict_full(network, name, readings):
    """Return :func:`predict` for a full network, computed once."""
    return [*predict(network, name, readings)]


def measure_accuracy(classes, name):
    """Return the accuracy in percent, mean over training subsets."""
    labels, is_test = read_labels(name)
    is_correct = classes == labels[is_test]
    return round(100 * is_correct.double().mean().item(), 3)
