# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Coverage and size of the prediction sets of ``predict --sure``.

``python tools/research/sure.py`` measures, for random training sets of each
dataset, the sets of all other photos: cross-conformal with the final model
(as in ``predict``), with the models of the folds (CV+), and split conformal
with half of the photos. It also compares predictions among half of the
classes with a model fitted to these classes.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import fit_networks
import numpy as np
import pandas as pd
import torch
from frozen import DATA, photos
from torch import Tensor
from training_subsets import draw, get_labels

from mmclca.apis.probe import LabeledFeatures, fit_linear
from mmclca.apis.probe.folds import OutOfFold, fit_chosen
from mmclca.errors import Error
from mmclca.evaluation.conformal import (
    Calibration,
    compute_ratios,
    count_needed,
    predict_sets,
)
from mmclca.models.heads import get_feature_subsets

COUNTS = (3, 5, 10)  # photos per class
NUM_DRAWS = 10  # random training sets per dataset
LEVEL = 95
GROUPED = ('mushroom10',)  # datasets with groups: observers
GROUP_LEVEL = 90  # 95 needs more observers per class


@dataclass(frozen=True)
class Photos:
    """Features (N, D) and labels (N,) of photos.

    ``subsets`` are lists of columns of the features.
    """

    features: Tensor
    labels: Tensor
    subsets: tuple | None = None
    groups: np.ndarray | None = None  # numbers (N,)

    def select(self, positions: Tensor) -> 'Photos':
        """Select photos by position or mask."""
        groups = self.groups
        if groups is not None:
            groups = groups[np.asarray(positions)]
        return Photos(
            self.features[positions],
            self.labels[positions],
            self.subsets,
            groups,
        )

    def label(self) -> LabeledFeatures:
        """Return the input of a classifier."""
        number = 1 + int(self.labels.max())
        return LabeledFeatures(
            self.features, self.labels, number, self.groups, self.subsets
        )


@dataclass(frozen=True)
class Fitted:
    """Classifier with its cross-validation, as fitted by ``fit``."""

    cv: OutOfFold
    scores: Tensor  # of new photos (M, K)

    @property
    def probabilities(self) -> Tensor:
        """Class probabilities of new photos (M, K)."""
        return (self.scores / self.cv.temperature).softmax(1)

    def calibrate(self) -> Calibration:
        """Return the stored calibration."""
        groups = self.cv.data.groups
        if groups is None:
            groups = np.arange(len(self.cv.labels))
        numbers = torch.as_tensor(groups)
        return Calibration(self.cv.probabilities(), self.cv.labels, numbers)


def fit(train, new):
    """Fit a classifier to photos, and score new photos."""
    cv, classifier = fit_chosen(train.label())
    return Fitted(cv, classifier.scores(new.features))


def measure(data):
    """Yield a row per random training set and rule.

    Sets of all other photos are measured.
    """
    for count in COUNTS:
        for number in range(NUM_DRAWS):
            split = split_photos(data, count, number)
            if split is None:
                continue
            train, new = split
            fitted = fit(train, new)
            keys = dict(count=count, number=number)
            for rule, sets in find_sets(fitted, train, new, number):
                yield keys | dict(rule=rule) | describe(sets, fitted, new)


def split_photos(data, count, number):
    """Return random training photos and the others, or None if too few."""
    everything = torch.ones(len(data.labels), dtype=torch.bool)
    drawn = draw(data.labels, everything, count, number)
    others = everything.index_fill(0, drawn, False)
    # all classes have to be in both
    if len(drawn) < count_needed(LEVEL) or 2 * others.sum() < len(drawn):
        return None
    return data.select(drawn), data.select(others)


def find_sets(fitted, train, new, number):
    """Yield the sets of new photos (M, K) by rule."""
    threshold = fitted.calibrate().find_threshold(LEVEL)
    sets = predict_sets(fitted.probabilities, threshold)
    yield 'predict', sets
    yield 'CV+', find_plus_sets(fitted.cv, train, new)
    covered = float(cover(sets, new.labels).mean())
    yield 'split', find_split_sets(train, new, number, covered)


def find_plus_sets(cv, train, new):
    """Return the sets of CV+, with the models of the first folds.

    A class is in the set unless too many training photos have a better score,
    by the same models.
    """
    lower = torch.zeros(len(new.labels), cv.logits.shape[-1])
    for k in range(cv.folds):
        training, test = cv.splits[k]
        part = train.select(training)
        model = fit_linear(part.label(), cv.classifier, cv.settings[k])
        logits = model.scores(new.features) / cv.temperature
        ratios = compute_ratios(logits.softmax(1))
        labels = train.labels[test]
        scores = compute_ratios(cv.logits[0, test].softmax(1))
        scores = scores[range(len(labels)), labels].sort().values
        # photos whose own class has a larger ratio
        lower += len(scores) - torch.searchsorted(scores, ratios, right=True)
    return lower < LEVEL / 100 * (1 + len(train.labels))


def find_split_sets(train, new, number, coverage):
    """Return sets of split conformal prediction with a given coverage.

    Half of the photos per class are for training. The threshold gives the
    coverage on the new photos; only the sizes differ.
    """
    half = math.ceil(torch.bincount(train.labels).max() / 2)
    everything = torch.ones(len(train.labels), dtype=torch.bool)
    drawn = draw(train.labels, everything, half, number)
    fitted = fit(train.select(drawn), new)
    ratios = compute_ratios(fitted.probabilities)
    scores = ratios[range(len(ratios)), new.labels].sort(descending=True)
    position = max(math.ceil(coverage * len(ratios) - 1e-6), 1)
    threshold = float(scores.values[position - 1])
    return predict_sets(fitted.probabilities, threshold)


def cover(sets, labels):
    """Return whether sets (M, K) contain the labels (M,)."""
    return sets.gather(1, labels[:, None])[:, 0].double()


def describe(sets, fitted, new):
    """Return coverage, sizes and accuracy, and the expected sizes."""
    sizes = sets.sum(1).double()
    calibration = fitted.calibrate()
    expected = calibration.measure_sizes(calibration.find_threshold(LEVEL))
    right = fitted.scores.argmax(1) == new.labels
    return dict(
        covered=float(cover(sets, new.labels).mean()),
        size=float(sizes.mean()),
        one=float((sizes == 1).double().mean()),
        two=float((sizes == 2).double().mean()),
        one_expected=expected.one_class,
        accuracy=float(right.double().mean()),
    )


def measure_among(data):
    """Yield a row per random training set and selected half of the classes.

    Predictions restricted to these classes are compared with those of a
    classifier fitted to their photos, and with unrestricted ones.
    """
    num_classes = 1 + int(data.labels.max())
    for count in COUNTS:
        for number in range(NUM_DRAWS):
            split = split_photos(data, count, number)
            if split is None:
                continue
            train, new = split
            order = np.random.RandomState(number).permutation(num_classes)
            kept = np.sort(order[: max(2, num_classes // 2)])
            row = compare_among(train, new, torch.from_numpy(kept))
            yield dict(count=count, number=number, **row)


def compare_among(train, new, kept):
    """Compare restricted, refitted and unrestricted predictions."""
    fitted = fit(train, new)
    chosen = torch.isin(new.labels, kept)
    scores, labels = fitted.scores[chosen], new.labels[chosen]
    restricted = kept[scores[:, kept].argmax(1)]
    part = select_classes(train, kept)
    refitted = fit(part, select_classes(new, kept))
    row = dict(
        everything=float((scores.argmax(1) == labels).double().mean()),
        among=float((restricted == labels).double().mean()),
        refit=float(
            (kept[refitted.scores.argmax(1)] == labels).double().mean()
        ),
        covered=math.nan,
        size=math.nan,
    )
    try:
        calibration = fitted.calibrate().among(kept.tolist())
        threshold = calibration.find_threshold(LEVEL)
    except Error:  # too few photos of these classes
        return row
    sets = predict_sets(fitted.probabilities[chosen][:, kept], threshold)
    numbers = torch.searchsorted(kept, labels)
    covered = float(cover(sets, numbers).mean())
    return row | dict(covered=covered, size=float(sets.sum(1).double().mean()))


def measure_groups(data):
    """Yield a row per random two thirds of the groups, tested on the others.

    Sets by group are compared with sets by photo.
    """
    number = 1 + int(data.groups.max())
    for seed in range(NUM_DRAWS):
        order = np.random.RandomState(seed).permutation(number)
        drawn = np.isin(data.groups, order[: 2 * number // 3])
        is_train = torch.from_numpy(drawn)
        train, new = data.select(is_train), data.select(~is_train)
        fitted = fit(train, new)
        by_group = fitted.calibrate()
        by_photo = replace(by_group, groups=torch.arange(len(train.labels)))
        row = dict(number=seed)
        for name, calibration in (('group', by_group), ('photo', by_photo)):
            sets = predict_sets(
                fitted.probabilities, calibration.find_threshold(GROUP_LEVEL)
            )
            covered = pd.Series(cover(sets, new.labels).numpy())
            row |= {
                f'groups by {name}': covered.groupby(new.groups).mean().mean(),
                f'photos by {name}': covered.mean(),
                f'size by {name}': float(sets.sum(1).double().mean()),
            }
        yield row


def read_groups(name, paths):
    """Return the numbers of the groups of photos of a dataset (N,)."""
    folder = DATA / 'sets' / name
    table = pd.read_csv(folder / 'groups.csv').set_index('file').group
    files = [Path(path).relative_to(folder).as_posix() for path in paths]
    return np.unique(table.loc[files].to_numpy(), return_inverse=True)[1]


def select_classes(data, kept):
    """Select the photos of some classes, and number these from 0."""
    data = data.select(torch.isin(data.labels, kept))
    labels = torch.searchsorted(kept, data.labels)
    return Photos(data.features, labels, data.subsets)


def show(title, table, keys):
    """Print means in percent, and sizes, by each of the keys."""
    print(title)
    for key in keys:
        groups = table.groupby(key, sort=False)
        means = groups.mean(numeric_only=True)
        means = means.drop(columns=['count', 'number'], errors='ignore')
        shares = [x for x in means if not x.startswith('size')]
        means[shares] = (100 * means[shares]).round(1)
        print(means.round(2).to_string())


def main():
    torch.set_num_threads(1)
    rows, among, grouped = [], [], []
    for network in fit_networks.list_defaults():
        probe = fit_networks.build_probe(network)
        title = fit_networks.get_name(network[0])
        subsets = get_feature_subsets(probe.model.head)
        for name, dataset in photos().items():
            features, _ = probe.features([*dataset.path])
            labels, _ = get_labels(dataset)
            data = Photos(features, labels, subsets)
            keys = dict(network=title, set=name)
            rows += [keys | row for row in measure(data)]
            among += [keys | row for row in measure_among(data)]
            if name in GROUPED:
                groups = read_groups(name, dataset.path)
                new = replace(data, groups=groups)
                grouped += [keys | row for row in measure_groups(new)]
    table = pd.DataFrame(rows)
    by_rule = table[table.rule == 'predict']
    keys = ('rule', 'network', 'count', 'set')
    show(f'{len(by_rule)} training sets, level {LEVEL}', table, keys[:1])
    show('predict', by_rule, keys[1:])
    spread = by_rule.groupby('set').covered.quantile([0.05, 0.5]).unstack()
    print((100 * spread).round(1).to_string())
    ratio = table.pivot_table(index='set', columns='rule', values='size')
    print((ratio.predict / ratio.split).round(2).to_string())
    show(f'new groups, level {GROUP_LEVEL}', pd.DataFrame(grouped), ['set'])
    show(
        f'half of the classes, {len(among)} training sets',
        pd.DataFrame(among).assign(all='all'),
        ('all', 'set'),
    )


if __name__ == '__main__':
    main()
