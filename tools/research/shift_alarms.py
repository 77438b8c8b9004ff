# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Alarms of ``predict`` about photos that differ from the training photos.

``python tools/research/shift_alarms.py`` prints how often two-sample tests
have a p-value below 5%: on photos of the same sessions, also with other
shares of the classes, and on later sessions with a lower accuracy.
"""

from dataclasses import dataclass
from unittest.mock import patch

import frontier
import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from few_photos import draw, get_labels
from frozen import DATASETS, photos
from torch import Tensor

from mmclca.apis.probe import LabeledFeatures
from mmclca.apis.probe.folds import fit_chosen
from mmclca.evaluation import shift
from mmclca.evaluation.shift import ScoredPhotos, estimate_shift_p_value
from mmclca.models.heads import (
    get_feature_subsets,
    nearest_cosine,
    nearest_of_other_groups,
)

COUNTS = (3, 5, 10)  # photos per class
SIZES = (10, 30, 100)  # new photos
NUM_DRAWS = 5  # random training sets per dataset
LEVEL = 0.05
LOSS = 0.1  # loss of accuracy on a later session that must be noticed
NUM_PERMUTATIONS = 99
FURTHER_DATASETS = ('chilli4', 'dates9', 'medleaf5', 'ricegrain14')
# training and test photos, taken in other sessions or of other backgrounds
CHANGES = (
    ('cotton5', 'cotton5'),
    ('mangodis8', 'mangodis8'),
    ('mushroom10', 'mushroom10'),
    ('leaf40', 'leaf40_white'),
)


@dataclass(frozen=True)
class Features:
    """Features (N, D) and labels (N,) of photos, and which are of a test."""

    features: Tensor
    labels: Tensor
    is_test: Tensor

    def select(self, positions):
        """Select photos."""
        return Features(
            self.features[positions],
            self.labels[positions],
            self.is_test[positions],
        )


@dataclass(frozen=True)
class Trial:
    """Scored photos, and their features, of a training set and new photos."""

    training: ScoredPhotos
    new: ScoredPhotos
    old_features: Tensor
    new_features: Tensor


def main():
    rows = []
    for network in filter(frontier.is_default, frontier.networks()):
        probe = frontier.build_probe(network)
        subsets = get_feature_subsets(probe.model.head)
        tables = photos((*DATASETS, *FURTHER_DATASETS))
        data = {name: read(probe, table) for name, table in tables.items()}
        for name, everything in data.items():
            rows += measure_same(everything, subsets, dict(set=name))
        for name, later in CHANGES:
            changed = data[later].select(data[later].is_test)
            first = data[name].select(~data[name].is_test)
            rows += measure_later(first, changed, subsets, dict(set=name))
    print_table(pd.DataFrame(rows))


def read(probe, dataset):
    """Return the features and labels of a dataset."""
    features, _ = probe.features([*dataset.path])
    return Features(features, *get_labels(dataset))


def print_table(table):
    """Print the alarms in percent: by kind of new photos, and by dataset."""
    tests = [*TESTS]
    later = table.kind == 'later'
    lower = later & (table.loss > LOSS)
    same = table[~later]
    print(f'{len(same)} runs on the same sessions: alarms in percent')
    alarms = 100 * (table[tests] < LEVEL)
    for keys in ('kind', 'set', 'count', 'size'):
        print(alarms[~later].groupby(same[keys]).mean().round(1).T)
    for count, rows in table[lower].groupby('count'):
        print(f'later sessions, {count} photos per class: {len(rows)} runs')
        by_set = alarms.loc[rows.index].groupby(rows.set).mean()
        print(by_set.T.assign(mean=by_set.mean()).round(1))
        by_size = alarms.loc[rows.index].groupby(rows['size']).mean()
        print(by_size.T.round(1))


def measure_same(photos, subsets, keys):
    """Yield p-values for random new photos, drawn like the training photos.

    With kind 'one', they are all of one class, with 'few' of a third of the
    classes.
    """
    everything = torch.ones(len(photos.labels)) > 0
    for count in COUNTS:
        for number in range(NUM_DRAWS):
            train = draw(photos.labels, everything, count, number)
            others = everything.index_fill(0, train, False)
            model = Model.fit(photos.select(train), subsets)
            random = np.random.RandomState(number)
            order = random.permutation(int(photos.labels.max()) + 1)
            kinds = dict(
                same=order, few=order[: len(order) // 3 + 1], one=order[:1]
            )
            for kind, labels in kinds.items():
                chosen = torch.isin(photos.labels, torch.from_numpy(labels))
                pool = photos.select(others & chosen)
                trials = model.draw_trials(pool, random)
                for size, trial in trials:
                    yield keys | dict(
                        kind=kind, count=count, size=size, **test(trial)
                    )


def measure_later(first, later, subsets, keys):
    """Yield p-values for photos of a later session, and the loss there."""
    everything = torch.ones(len(first.labels)) > 0
    for count in COUNTS:
        for number in range(NUM_DRAWS):
            train = draw(first.labels, everything, count, number)
            model = Model.fit(first.select(train), subsets)
            random = np.random.RandomState(number)
            loss = model.accuracy - model.measure(later)
            for size, trial in model.draw_trials(later, random):
                yield keys | dict(
                    kind='later',
                    count=count,
                    size=size,
                    loss=loss,
                    **test(trial),
                )


@dataclass(frozen=True)
class Model:
    """Training photos, their scores and accuracy, and the classifier."""

    photos: Features
    training: ScoredPhotos
    accuracy: float
    weight: Tensor
    bias: Tensor

    @classmethod
    def fit(cls, photos, subsets):
        """Fit and cross-validate a probe, as ``fit`` does with one view."""
        number = 1 + int(photos.labels.max())
        data = LabeledFeatures(
            photos.features, photos.labels, number, feature_subsets=subsets
        )
        cv, (weight, bias) = fit_chosen(data)
        everything = torch.arange(len(photos.labels))
        training = ScoredPhotos(
            cv.probabilities(),
            nearest_of_other_groups(photos.features, everything, everything),
        )
        return cls(
            photos,
            training,
            float(cv.accuracy.mean()),
            weight / cv.temperature,
            bias / cv.temperature,
        )

    def score(self, features):
        """Return the class probabilities of new photos."""
        return F.linear(features, self.weight, self.bias).softmax(1)

    def measure(self, photos):
        """Return the accuracy on new photos."""
        correct = self.score(photos.features).argmax(1) == photos.labels
        return float(correct.float().mean())

    def draw_trials(self, pool, random):
        """Yield random new photos from a pool: their number, and a trial."""
        order = torch.from_numpy(random.permutation(len(pool.labels)))
        for size in SIZES:
            if len(order) < min(size, 2 * SIZES[0]):
                continue
            new = pool.features[order[:size]]
            references = F.normalize(self.photos.features, dim=1)
            similarities = nearest_cosine(references, new)
            scored = ScoredPhotos(self.score(new), similarities)
            yield (
                size,
                Trial(self.training, scored, self.photos.features, new),
            )


def test(trial):
    """Return the p-value of each test."""
    return {name: function(trial) for name, function in TESTS.items()}


def rank_test(trial, weight, classes=True):
    """Rank test of similarities, and of probability ratios with a weight."""
    training, new = trial.training, trial.new
    if not classes:
        training, new = without_classes(training), without_classes(new)
    with patch.object(shift, 'RATIO_WEIGHT', weight):
        return estimate_shift_p_value(training, new)


def without_classes(scored):
    """Replace the predictions, so that all photos have the same class."""
    single = torch.tensor([0.9, 0.1]).expand(len(scored.similarities), 2)
    return ScoredPhotos(single, scored.similarities)


def permutation_test(trial, statistic):
    """Permute old and new photos within each predicted class."""
    features = torch.cat([trial.old_features, trial.new_features]).double()
    scored = trial.training.join(trial.new)
    predicted = scored.probabilities.argmax(1).numpy()
    is_new = np.arange(len(predicted)) >= len(trial.old_features)
    random = np.random.RandomState(0)
    # sorted by class, then randomly: positions of the permuted flags
    start = predicted.argsort(kind='stable')
    flags = [is_new]
    for _ in range(NUM_PERMUTATIONS):
        shuffled = np.empty_like(is_new)
        order = np.lexsort((random.rand(len(is_new)), predicted))
        shuffled[order] = is_new[start]
        flags.append(shuffled)
    kernel = statistic(features)
    groups = F.one_hot(scored.probabilities.argmax(1)).double()
    groups = groups[:, groups.sum(0) > 0]
    center = torch.eye(len(groups)).double()
    center = center - groups / groups.sum(0) @ groups.T
    signs = torch.from_numpy(np.array(flags)).double() @ center
    values = ((signs @ center @ kernel @ center) * signs).sum(1)
    return float((values >= values[0] - 1e-12).double().mean())


def energy_kernel(features):
    """Negative distances, for the energy distance."""
    return -torch.cdist(features, features)


def gaussian_kernel(features):
    """Gaussian kernel of the median distance, for the MMD."""
    squared = torch.cdist(features, features).square()
    return (-squared / squared[squared > 0].median()).exp()


def classifier_kernel(features):
    """Hat matrix of a ridge regression, for a classifier two-sample test."""
    centered = features - features.mean(0)
    gram = centered @ centered.T
    penalty = 0.3 * gram.trace() / len(gram) * torch.eye(len(gram)).double()
    hat = gram @ torch.linalg.inv(gram + penalty)
    return hat - hat.diagonal().diag()


TESTS = {
    'similarity and ratio': lambda x: rank_test(x, shift.RATIO_WEIGHT),
    'similarity': lambda x: rank_test(x, 0),
    'similarity, without classes': lambda x: rank_test(x, 0, False),
    'energy distance': lambda x: permutation_test(x, energy_kernel),
    'MMD': lambda x: permutation_test(x, gaussian_kernel),
    'classifier': lambda x: permutation_test(x, classifier_kernel),
}


if __name__ == '__main__':
    main()
