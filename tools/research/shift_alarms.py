# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Alarms of ``predict`` about photos that differ from the training photos.

``python tools/research/shift_alarms.py`` prints how often two-sample tests
have a p-value below 5%: on photos of the same sessions, also with other
shares of the classes, and on later sessions with a lower accuracy. "Left out"
are the best weights and number of photos per score for all other datasets,
with alarms in at most 5% of runs on the same sessions.
"""

from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from unittest.mock import patch

import fit_networks
import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from frozen import DATASETS, photos
from scipy.stats import fisher_exact
from torch import Tensor
from training_subsets import draw, get_labels

from mmclca.apis.probe import LabeledFeatures
from mmclca.apis.probe.folds import fit_chosen
from mmclca.evaluation import shift
from mmclca.evaluation.shift import (
    References,
    ScoredPhotos,
    estimate_shift_p_value,
)
from mmclca.models.heads import get_feature_subsets

COUNTS = (3, 5, 10)  # photos per class
SIZES = (10, 30, 100)  # new photos
NUM_DRAWS = 5  # random training sets per dataset
LEVEL = 0.05
LOSS = 0.1  # loss of accuracy on a later session that must be noticed
NUM_PERMUTATIONS = 99
# weights of the distance to the nearest photo, the ratio of distances and the
# ratio of probabilities, and photos per score: the rules to choose from
WEIGHTS = (
    (1, 0, 0),
    (0, 1, 0),
    (0, 0, 1),
    (2, 1, 0),
    (1, 1, 0),
    (1, 2, 0),
    (1, 0, 1),
    (0, 1, 1),
    (1, 1, 1),
)
PHOTOS_PER_SCORE = (1.5, 1.75, 2.0, 2.25, 2.5)
LEFT_OUT = 'left out'
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
    """Training and new photos: scores, features, and which are correct.

    The scores are logarithms: distance, distance ratio, probability ratio.
    """

    training: ScoredPhotos
    new: ScoredPhotos
    old_features: Tensor
    new_features: Tensor
    old_correct: Tensor
    new_correct: Tensor


def main():
    rows = []
    for network in fit_networks.list_defaults():
        probe = fit_networks.build_probe(network)
        subsets = get_feature_subsets(probe.model.head)
        tables = photos((*DATASETS, *FURTHER_DATASETS))
        data = {name: read(probe, table) for name, table in tables.items()}
        for name, everything in data.items():
            rows += measure_same(everything, subsets, dict(set=name))
        for name, later in CHANGES:
            changed = data[later].select(data[later].is_test)
            first = data[name].select(~data[name].is_test)
            rows += measure_later(first, changed, subsets, dict(set=name))
    table = pd.DataFrame(rows)
    table[LEFT_OUT] = choose_left_out(table)
    print_table(table)


def read(probe, dataset):
    """Return the features and labels of a dataset."""
    features, _ = probe.features([*dataset.path])
    return Features(features, *get_labels(dataset))


def print_table(table):
    """Print the alarms in percent: by kind of new photos, and by dataset."""
    tests = [LEFT_OUT, *TESTS]
    later = table.kind == 'later'
    lower = later & (table.loss > LOSS)
    same = table[~later]
    print(f'{len(same)} runs on the same sessions: alarms in percent')
    alarms = 100 * (table[tests] < LEVEL)
    for keys in ('kind', 'set', 'count', 'size'):
        print(alarms[~later].groupby(same[keys]).mean().round(1).T)
    print(
        f'{lower.sum()} later runs:', alarms[lower].mean().round(1), sep='\n'
    )
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
    references: References
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
        references = References(
            photos.labels, torch.arange(len(photos.labels))
        )
        unit = F.normalize(photos.features, dim=1)
        scores = references.score_training(unit @ unit.T)
        return cls(
            photos,
            references,
            score_photos(cv.probabilities(), scores),
            float(cv.accuracy.mean()),
            weight / cv.temperature,
            bias / cv.temperature,
        )

    def predict(self, features):
        """Return the class probabilities of new photos."""
        return F.linear(features, self.weight, self.bias).softmax(1)

    def score(self, features):
        """Score new photos."""
        probabilities = self.predict(features)
        unit = F.normalize(self.photos.features, dim=1)
        scores = self.references.score_new(
            F.normalize(features, dim=1) @ unit.T, probabilities.argmax(1)
        )
        return score_photos(probabilities, scores)

    def measure(self, photos):
        """Return the accuracy on new photos."""
        correct = self.predict(photos.features).argmax(1) == photos.labels
        return float(correct.float().mean())

    def draw_trials(self, pool, random):
        """Yield random new photos from a pool: their number, and a trial."""
        order = torch.from_numpy(random.permutation(len(pool.labels)))
        for size in SIZES:
            if len(order) < min(size, 2 * SIZES[0]):
                continue
            new = pool.select(order[:size])
            scored = self.score(new.features)
            yield (
                size,
                Trial(
                    self.training,
                    scored,
                    self.photos.features,
                    new.features,
                    self.training.predicted == self.photos.labels,
                    scored.predicted == new.labels,
                ),
            )


def score_photos(probabilities, scores):
    """Add the ratio of the two largest probabilities to the scores."""
    probabilities = probabilities.double().nan_to_num(0)
    first, second = probabilities.topk(2).values.clamp(min=1e-30).unbind(1)
    ratio = (first / second).log()[:, None]
    scores = torch.cat([scores, ratio], dim=1)
    return ScoredPhotos(probabilities.argmax(1), scores)


def test(trial):
    """Return the p-value of each test."""
    functions = RULES | TESTS
    return {name: function(trial) for name, function in functions.items()}


def score_test(trial, weights, per_score=shift.PHOTOS_PER_SCORE, classes=True):
    """Test of the scores of a trial with other weights."""
    training, new = trial.training, trial.new
    if not classes:
        training, new = without_classes(training), without_classes(new)
    with patch.multiple(shift, WEIGHTS=weights, PHOTOS_PER_SCORE=per_score):
        return estimate_shift_p_value(training, new)


def without_classes(scored):
    """Replace the predictions, so that all photos have the same class."""
    return replace(scored, predicted=torch.zeros_like(scored.predicted))


def label_test(trial):
    """Fisher's exact test for a lower accuracy, with the labels known."""
    old, new = trial.old_correct, trial.new_correct
    counts = [
        [int(correct.sum()), int((~correct).sum())] for correct in (new, old)
    ]
    return float(fisher_exact(counts, alternative='less').pvalue)


def choose_left_out(table):
    """Return p-values by the best rule for all other datasets.

    ``leaf40`` and ``leaf40_white`` show the same leaves.
    """
    photos = table.set.replace('leaf40_white', 'leaf40')
    p_values = pd.Series(1.0, table.index)
    for name in photos.unique():
        best = choose_rule(table[photos != name])
        p_values[photos == name] = table.loc[photos == name, best]
    return p_values


def choose_rule(table):
    """Return the rule with the most power, and few alarms otherwise.

    The power is the mean over numbers of photos per class and datasets.
    """
    alarms = table[[*RULES]] < LEVEL
    is_later = table.kind == 'later'
    rates = alarms[~is_later].groupby(table.kind[~is_later]).mean()
    rows = table[is_later & (table.loss > LOSS)]
    power = alarms.loc[rows.index].groupby([rows['count'], rows.set]).mean()
    mean = power.groupby('count').mean().mean()
    return mean[rates.max() <= LEVEL].idxmax()


def permutation_test(trial, statistic):
    """Permute old and new photos within each predicted class."""
    features = torch.cat([trial.old_features, trial.new_features]).double()
    classes = torch.cat([trial.training.predicted, trial.new.predicted])
    predicted = classes.numpy()
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
    groups = F.one_hot(classes).double()
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


RULES = {
    f'{weights}, {per_score} photos': partial(
        score_test, weights=weights, per_score=per_score
    )
    for weights, per_score in product(WEIGHTS, PHOTOS_PER_SCORE)
}
TESTS = {
    'distance and ratio': partial(score_test, weights=(*shift.WEIGHTS, 0)),
    'distance only': partial(score_test, weights=(1, 0, 0)),
    'ratio only': partial(score_test, weights=(0, 1, 0)),
    'without classes': partial(
        score_test, weights=(*shift.WEIGHTS, 0), classes=False
    ),
    'energy distance': partial(permutation_test, statistic=energy_kernel),
    'MMD': partial(permutation_test, statistic=gaussian_kernel),
    'classifier': partial(permutation_test, statistic=classifier_kernel),
    'labels of all new photos': label_test,
}


if __name__ == '__main__':
    main()
