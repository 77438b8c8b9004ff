# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Predictions with few photos per class, and their accuracy."""

from functools import cache

import numpy as np
import torch
from frozen import read_dataset
from training_subsets import draws, get_labels

from mmclca.apis.probe import (
    ClassifierSettings,
    FoldSettings,
    LabeledFeatures,
    ProbeSetting,
    fit_linear,
)
from mmclca.apis.probe.folds import fit_chosen

from .features import find_crops, load_features
from .readings import FIT, STRENGTHS, find_subsets

FOLDS = FoldSettings(folds=3)  # photos per class


@cache
def read_labels(name):
    """Return the labels in a dataset, and a mask for test photos."""
    return get_labels(read_dataset(name))


def predict(network, name, readings):
    """Yield the classes predicted for test photos, per training subset.

    Returns one tensor (subsets, photos) per reading.
    """
    labels, is_test = read_labels(name)
    features = torch.from_numpy(load_features(network, name).features)
    for reading in readings:
        columns = reading.select(network)
        views = features[:, None, columns]
        if reading.classifier == FIT:
            views = add_crops(features, ~is_test, find_crops(network, name))
        tested, classes = views[is_test, 0].float(), []
        for subset in draws(labels, ~is_test, reading.count):
            data = LabeledFeatures(
                views[subset].float(),
                labels[subset],
                1 + int(labels.max()),
                feature_subsets=find_subsets(network)
                if reading.classifier == FIT
                else None,
            )
            fitted = fit_reading(data, reading.classifier)
            classes.append(fitted.scores(tested).argmax(1))
        yield torch.stack(classes)


def add_crops(features, is_training, file):
    """Return features with the views for training photos, (N, V, D).

    Test photos have only the first view, zeros in others.
    """
    crops = torch.from_numpy(np.load(file))
    views = features.new_zeros(
        len(features), 1 + crops.shape[1], *crops[0, 0].shape
    )
    views[:, 0] = features
    views[is_training, 1:] = crops
    return views


def fit_reading(data, classifier):
    """Fit a classifier with one setting, or as ``fit`` does."""
    if classifier == FIT:
        return fit_chosen(data, folds=FOLDS)[1]
    setting = ProbeSetting(STRENGTHS[classifier])
    return fit_linear(data, ClassifierSettings(classifier), setting)


@cache
def predict_full(network, name, readings):
    """Return :func:`predict` for a full network, computed once."""
    return [*predict(network, name, readings)]


def measure_accuracy(classes, name):
    """Return the accuracy in percent, mean over training subsets."""
    labels, is_test = read_labels(name)
    is_correct = classes == labels[is_test]
    return round(100 * is_correct.double().mean().item(), 3)
