# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A few photos per class on several datasets: frozen backbones."""

from itertools import product

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from frozen import FEATURES, Frozen, photos
from mmengine.config import Config
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestCentroid
from tables import half_width, kept, machine_of, select

from mmclca.apis.probe import fit_linear
from mmclca.apis.probe.classifiers import rotate
from mmclca.evaluation.cost import count_config
from mmclca.sweep.runs import NONE
from mmclca.utils.provenance import provenance

GRID = Config.fromfile('configs/sweeps/few_photos_frozen.py').to_dict()
STUDY = 'few_photos_frozen'
READINGS, CLASSIFIERS = GRID['readings'], GRID['classifiers']
VIEWED = GRID['viewed']
NUM_DRAWS = 5
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
    rows = kept(STUDY, measure, [(facts_of(one), (one,)) for one in NETWORKS])
    return dict(
        facts=machine_of(STUDY),
        mean=lambda **way: of_sets(rows, way)[0].mean(),
        gmacs=lambda **way: of_sets(rows, way)[1],
        difference=lambda one, other: difference(rows, one, other),
    )


def measure(one):
    """Return rows for a network: costs, and accuracy per dataset as the mean
    over random splits."""
    depths = sorted({layers[-1] + 1 for layers, _ in READINGS.values()})
    gmacs = {
        depth: count_config(one.config(range(depth)).model).flops / 1e9
        for depth in depths
    }
    found = {
        name: measured(one, name, own, GRID['counts'])
        for name, own in photos().items()
    }
    commit = provenance()['commit']
    return [dict(row, commit=commit) for row in to_rows(found, gmacs)]


def facts_of(one):
    """Return the columns that identify a network."""
    return {key: vars(one)[key] for key in FACTS}


def measured(one, name, own, counts):
    """Return accuracies in percent per training subset, by features,
    classifier and number of photos."""
    features = one.views(name)
    labels, tested = labels_of(own)
    found, which = {}, (one.method, one.img_size, one.row)
    for name in VIEWED if one.extra_views else READINGS:
        read = read_of(features, name).double()
        read = rotate(read.flatten(0, 1))[0].unflatten(0, read.shape[:2])
        several = which in COMPARED and name in GRID['compared']
        number = len(CLASSIFIERS) if several else 1
        kinds = [*CLASSIFIERS][:number]
        for kind, count in product(kinds, counts):
            found[f'{name}; {kind}; {count}'] = [
                accuracy(read, labels, tested, drawn, kind)
                for drawn in draws(labels, ~tested, count)
            ]
    return found


def labels_of(own):
    """Return the labels of a dataset, and a mask of its test photos."""
    tested = torch.tensor((own.split == 'test').to_numpy())
    return torch.tensor(own.label.to_numpy()), tested


def read_of(features, reading):
    """Return the features of all views, (V, N, D)."""
    layers, parts = READINGS[reading]
    parts = [FEATURES.index(x) for x in parts]
    features = F.layer_norm(features, features.shape[-1:])
    return features[:, :, layers][:, :, :, parts].flatten(2)


def draws(labels, known, count):
    """Yield random training subsets, see :func:`draw`."""
    return (draw(labels, known, count, i) for i in range(NUM_DRAWS))


def draw(labels, known, count, number):
    """Return a random training subset: ``count`` images per class, or all if
    a class has fewer."""
    known = torch.where(known)[0].numpy()
    order = np.random.RandomState(number).permutation(known)
    ranks = pd.Series(order).groupby(labels[order].numpy()).cumcount()
    return torch.from_numpy(np.sort(order[ranks < count]))


def accuracy(read, labels, tested, drawn, kind):
    """Return the accuracy in percent of a classifier trained on all views and
    tested on one view."""
    given = read[:, drawn].flatten(0, 1), labels[drawn].repeat(len(read))
    found = predicted(*CLASSIFIERS[kind], *given, read[0, tested])
    return round(100 * float((found == labels[tested]).float().mean()), 2)


def predicted(kind, strength, features, labels, tested):
    """Return the classes that a classifier predicts for test features."""
    if kind in ('ridge', 'logistic'):
        number = 1 + int(labels.max())
        fitted = fit_linear(features, labels, number, kind, strength)
        return fitted.scores(tested).argmax(1)
    features, basis = rotate(features)  # LDA shrinks by the mean variance
    tested = tested if basis is None else tested @ basis
    fitted = NearestCentroid()
    # with one image per class, LDA is the nearest mean
    if kind == 'lda' and len(labels) > len(labels.unique()):
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


def of_sets(rows, way):
    """Return accuracy by dataset and GMACs for some settings, NaN if not
    measured."""
    own = select(rows, DEFAULT | way)
    return own[sets_of(own)].mean(), own.gmacs.mean()


def sets_of(rows):
    """Return the accuracy columns, one per dataset."""
    return rows.columns.drop([*WAY, 'gmacs', 'commit'])


def difference(rows, one, other):
    """Return the paired difference between two ways in points, with its 95%
    t interval over datasets."""
    paired = of_sets(rows, one)[0] - of_sets(rows, other)[0]
    mean, half = paired.mean(), half_width(paired)
    return f'{mean:+.1f} [{mean - half:+.1f}, {mean + half:+.1f}]'
