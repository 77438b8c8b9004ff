# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Coverage and width of the intervals of ``survey``, by simulation.

``python tools/research/surveys.py`` fits models to a few photos of each
dataset, and surveys folders of other photos. It prints, by kind of shift and
number of labels, how often the 95% intervals contain the truth, and their
width divided by the width without the model: of Wilson's interval with finite
population correction, from as many labels of photos drawn at random.
"""

from collections import defaultdict
from typing import NamedTuple

import fit_networks
import numpy as np
import pandas as pd
import torch
from frozen import DATASETS, photos
from training_subsets import draw, get_labels

from mmclca import cli
from mmclca.evaluation import wilson
from mmclca.survey import Survey, draw_sample, estimate_survey, stratify

COUNTS, NUM_DRAWS = (3, 5, 10), 4  # photos per class, random training sets
LABELS = (20, 30, 60)
SIZES = 100, 400  # photos per folder
NUM_SAMPLES = 500
TINY = 1e-9  # rounding
# datasets whose test photos come from later sessions or other observers
LATER, OBSERVERS = ('cotton5', 'mangodis8'), ('mushroom10',)
# datasets on which nothing was chosen
FRESH = ('dates9', 'medleaf5', 'ricegrain14', 'chilli4')


class Pool(NamedTuple):
    """Photos classified by a model that was not trained on them."""

    dataset: str
    probabilities: np.ndarray  # (M, K)
    labels: np.ndarray  # (M,), K for none of the classes
    confusions: np.ndarray  # (K, K), cross-validated


def collect_pools(names):
    """Return the pools by kind of shift."""
    pools = defaultdict(list)
    for network in fit_networks.list_defaults():
        probe = fit_networks.build_probe(network)
        for name, dataset in photos(names).items():
            features, _ = probe.features([*dataset.path])
            data = name, features, *get_labels(dataset)
            for count in COUNTS:
                for number in range(NUM_DRAWS):
                    for kind, pool in split(probe, data, count, number):
                        pools[kind].append(pool)
    return pools


def split(probe, data, count, number):
    """Yield the pools of a random training set, by kind of shift."""
    name, features, labels, is_test = data
    everything = torch.ones(len(labels), dtype=torch.bool)
    train = draw(labels, everything, count, number)
    others = everything.index_fill(0, train, False)
    if others.sum() >= SIZES[0]:
        pool = classify(probe, name, features, labels, train, others)
        yield 'same session', pool
        yield 'changed class shares', pool
        reduced = drop_classes(labels, number)
        known = train[reduced[train] < reduced.max()]
        args = probe, name, features, reduced, known, others
        yield 'unknown classes', classify(*args)
    if name in (*LATER, *OBSERVERS):
        train = draw(labels, ~is_test, count, number)
        kind = 'later sessions' if name in LATER else 'other observers'
        args = probe, name, features, labels, train, is_test
        yield kind, classify(*args)


def drop_classes(labels, seed):
    """Give a random quarter of the classes the largest label."""
    size = 1 + int(labels.max())
    order = np.random.default_rng(seed).permutation(size)
    left = size - max(1, size // 4)
    new = torch.full((size,), left)
    new[order[:left]] = torch.arange(left)
    return new[labels]


def classify(probe, name, features, labels, train, others):
    """Fit a model to photos, and classify other ones."""
    classes = [*map(str, range(1 + int(labels[train].max())))]
    cv = probe.fit(features[train], labels[train], classes)
    size = len(classes)
    predicted = cv.probabilities().argmax(1)
    pairs = predicted * size + labels[train]
    confusions = torch.bincount(pairs, minlength=size**2)
    scores = probe.scores(features[others]).softmax(1).numpy()
    return Pool(
        name,
        scores.astype(float),
        labels[others].numpy(),
        confusions.view(size, size).numpy(),
    )


def draw_folder(pool, kind, rng):
    """Return the positions of a random folder of photos in a pool."""
    total = len(pool.labels)
    size = min(total, int(rng.integers(SIZES[0], SIZES[1] + 1)))
    if kind != 'changed class shares':
        return rng.permutation(total)[:size]
    # photos of a class with a large share come first
    size = max(SIZES[0], min(size, int(0.6 * total)))
    shares = rng.dirichlet(np.full(pool.probabilities.shape[1], 0.7)) + 1e-3
    return np.argsort(rng.exponential(size=total) / shares[pool.labels])[:size]


def survey(pool, folder, number, seed):
    """Survey a folder, with and without a model; return figures."""
    probabilities, labels = pool.probabilities[folder], pool.labels[folder]
    total, size = probabilities.shape
    is_correct = probabilities.argmax(1) == labels
    positions = draw_sample(stratify(probabilities, number), number, seed)
    estimate = estimate_survey(
        Survey(probabilities, positions, labels[positions], pool.confusions),
        seed=seed,
        num_samples=NUM_SAMPLES,
    )
    drawn = np.random.default_rng(seed).permutation(total)[:number]
    # one column of truths per question: correct, each class, no class
    truths = np.column_stack([is_correct, np.eye(size + 1)[labels]])
    means = truths.mean(axis=0)
    scale = np.r_[1, np.full(size + 1, 1 / total)]
    bounds = [(x.low, x.high) for x in (estimate.accuracy, *estimate.counts)]
    low, high = np.array(bounds).T * scale
    # Wilson's interval for as many photos as the correction leaves
    effective = number * (total - 1) / max(total - number, 1)
    shares = truths[drawn].mean(axis=0)
    plain_low, plain_high = np.transpose(
        [wilson(share, effective) for share in shares]
    )
    inside = (low - TINY <= means) & (means <= high + TINY)
    plain_inside = (plain_low <= means) & (means <= plain_high)
    ratio = (high - low)[0] / (plain_high - plain_low)[0]
    widths = (high - low)[1:-1].mean(), (plain_high - plain_low)[1:-1].mean()
    return dict(
        dataset=pool.dataset,
        share=means[0],
        error=estimate.accuracy.value - means[0],
        accuracy=inside[0],
        accuracy_width=ratio,
        counts=inside[1:-1].mean(),
        counts_width=widths[0] / widths[1],
        none=inside[-1],
        plain_accuracy=plain_inside[0],
        plain_counts=plain_inside[1:-1].mean(),
    )


def survey_kinds(pools, number):
    """Yield the figures of ``number`` surveys per kind and labels."""
    for kind, candidates in pools.items():
        by_dataset = defaultdict(list)
        for pool in candidates:
            by_dataset[pool.dataset].append(pool)
        names = sorted(by_dataset)
        for labels in LABELS:
            for seed in range(number):
                rng = np.random.default_rng(seed)
                same = by_dataset[names[rng.integers(len(names))]]
                pool = same[rng.integers(len(same))]
                folder = draw_folder(pool, kind, rng)
                figures = survey(pool, folder, labels, seed)
                yield dict(kind=kind, labels=labels, **figures)


def summarize(rows, keys):
    """Return coverage in percent and median widths by some columns."""
    groups = rows.groupby(keys, sort=False)
    widths = ['accuracy_width', 'counts_width']
    others = rows.columns.difference([*keys, *widths, 'kind', 'dataset'])
    others = [x for x in others if x != 'labels']
    table = (100 * groups[others].mean()).round(1)
    return table.join(groups[widths].median().round(2))


def main():
    parser = cli.Parser(__doc__)
    parser.add('--surveys', 'surveys per kind and number of labels', 700)
    parser.flag('--fresh', 'datasets on which nothing was chosen')
    args = parser.parse_args()
    pools = collect_pools(FRESH if args.fresh else DATASETS)
    rows = pd.DataFrame(survey_kinds(pools, args.surveys))
    pd.set_option('display.width', 0, 'display.max_columns', None)
    for keys in (['kind'], ['kind', 'labels'], ['dataset']):
        print(summarize(rows, keys).to_string())


if __name__ == '__main__':
    cli.run(main)
