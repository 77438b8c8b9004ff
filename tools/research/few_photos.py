# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A few photos per class on several datasets: frozen backbones."""

from itertools import product

import numpy as np
import torch
import torch.nn.functional as F
from frozen import FEATURES, Frozen, photos
from mmengine.config import Config
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestCentroid
from tables import half_width, kept, read_machine, select
from training_subsets import draws, get_labels

from mmclca.apis.probe import (
    ClassifierSettings,
    LabeledFeatures,
    ProbeSetting,
    fit_linear,
)
from mmclca.apis.probe.data import rotate
from mmclca.evaluation.cost import count_config
from mmclca.sweep.runs import NONE
from mmclca.utils.provenance import provenance

GRID = Config.fromfile('configs/sweeps/few_photos_frozen.py').to_dict()
STUDY = 'few_photos_frozen'
READINGS, CLASSIFIERS = GRID['readings'], GRID['classifiers']
VIEWED = GRID['viewed']
# reducer, size and row with which classifiers are compared
COMPARED = [(NONE, 224, ''), ('ATC', 224, '')]
FACTS = 'backbone', 'method', 'keep_rate', 'img_size', 'row'
WAY = [*FACTS, 'reading', 'classifier', 'count']
# features stored for each number of photos per class with the first
# classifier; all other settings only for three photos
REPORTED = [
    GRID['default'],
    'CLS and std, layers 0 to 11',
    'CLS and average, layers 0 to 11',
]
NETWORKS = [Frozen(**settings) for settings in GRID['networks']]
# default settings
DEFAULT = dict(backbone='deit-tiny-p16', method=NONE, keep_rate=1.0)
DEFAULT |= dict(img_size=224, row='', reading=GRID['default'], count=3)
DEFAULT['classifier'] = [*CLASSIFIERS][0]


def values():
    """Return the values for the template."""
    rows = kept(
        STUDY,
        measure,
        [(identify(network), (network,)) for network in NETWORKS],
    )
    return dict(
        facts=read_machine(STUDY),
        mean=lambda **way: summarize_datasets(rows, way)[0].mean(),
        gmacs=lambda **way: summarize_datasets(rows, way)[1],
        difference=lambda way, other: difference(rows, way, other),
    )


def measure(network):
    """Return rows for a network: costs, and accuracy per dataset as the mean
    over random splits."""
    depths = sorted({layers[-1] + 1 for layers, _ in READINGS.values()})
    gmacs = {
        depth: count_config(network.config(range(depth)).model).flops / 1e9
        for depth in depths
    }
    accuracies = {
        name: measured(network, name, dataset, GRID['counts'])
        for name, dataset in photos().items()
    }
    commit = provenance()['commit']
    return [dict(row, commit=commit) for row in to_rows(accuracies, gmacs)]


def identify(network):
    """Return the columns that identify a network."""
    return {key: vars(network)[key] for key in FACTS}


def measured(network, name, dataset, counts):
    """Return accuracies in percent per training subset, by features,
    classifier and number of photos."""
    features = network.views(name)
    labels, tested = get_labels(dataset)
    accuracies, which = {}, (network.method, network.img_size, network.row)
    for name in VIEWED if network.extra_views else READINGS:
        read = get_features(features, name).double()
        read = rotate(read.flatten(0, 1))[0].unflatten(0, read.shape[:2])
        several = which in COMPARED and name in GRID['compared']
        number = len(CLASSIFIERS) if several else 1
        kinds = [*CLASSIFIERS][:number]
        for method, count in product(kinds, counts):
            accuracies[f'{name}; {method}; {count}'] = [
                accuracy(read, labels, tested, drawn, method)
                for drawn in draws(labels, ~tested, count)
            ]
    return accuracies


def get_features(features, reading):
    """Return the features of all views, (V, N, D)."""
    layers, parts = READINGS[reading]
    parts = [FEATURES.index(x) for x in parts]
    features = F.layer_norm(features, features.shape[-1:])
    return features[:, :, layers][:, :, :, parts].flatten(2)


def accuracy(read, labels, tested, drawn, method):
    """Return the accuracy in percent of a classifier trained on all views and
    tested on one view."""
    training = read[:, drawn].flatten(0, 1), labels[drawn].repeat(len(read))
    accuracies = predicted(*CLASSIFIERS[method], *training, read[0, tested])
    return round(100 * float((accuracies == labels[tested]).float().mean()), 2)


def predicted(method, strength, features, labels, tested):
    """Return the classes that a classifier predicts for test features."""
    if method in ('ridge', 'logistic'):
        data = LabeledFeatures(features, labels, 1 + int(labels.max()))
        setting = ProbeSetting(strength)
        fitted = fit_linear(data, ClassifierSettings(method), setting)
        return fitted.scores(tested).argmax(1)
    features, basis = rotate(features)  # LDA shrinks by the mean variance
    tested = tested if basis is None else tested @ basis
    fitted = NearestCentroid()
    # with one image per class, LDA is the nearest mean
    if method == 'lda' and len(labels) > len(labels.unique()):
        fitted = LinearDiscriminantAnalysis('lsqr', shrinkage=strength)
    return torch.from_numpy(fitted.fit(features, labels).predict(tested))


def to_rows(sets, gmacs):
    """Return the rows of accuracies by dataset and way, and of GMACs by
    depth."""
    rows = []
    for key in next(iter(sets.values())):
        reading, classifier, count = key.split('; ')
        way = dict(reading=reading, classifier=classifier, count=int(count))
        cost = gmacs[READINGS[reading][0][-1] + 1]
        means = {x: round(np.mean(sets[x][key]), 3) for x in sorted(sets)}
        if is_stored(**way):
            rows.append(dict(way, gmacs=cost, **means))
    return rows


def is_stored(reading, classifier, count):
    """Return whether the table has a row for these settings."""
    usual = reading in REPORTED and classifier == DEFAULT['classifier']
    return count == DEFAULT['count'] or usual


def summarize_datasets(rows, way):
    """Return accuracy by dataset and GMACs for some settings, NaN if not
    measured."""
    dataset = select(rows, DEFAULT | way)
    return dataset[get_dataset_columns(dataset)].mean(), dataset.gmacs.mean()


def get_dataset_columns(rows):
    """Return the accuracy columns, one per dataset."""
    return rows.columns.drop([*WAY, 'gmacs', 'commit'])


def difference(rows, network, other):
    """Return the paired difference between two ways in points, with its 95%
    t interval over datasets."""
    paired = (
        summarize_datasets(rows, network)[0]
        - summarize_datasets(rows, other)[0]
    )
    mean, half = paired.mean(), half_width(paired)
    return f'{mean:+.1f} [{mean - half:+.1f}, {mean + half:+.1f}]'
