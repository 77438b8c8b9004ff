# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Coverage of the interval of the false-alarm rate of ``fit``.

``python tools/research/false_alarms.py`` prints, for random training sets of
each dataset, how often the interval contains the rate on all other photos.
"""

import fit_networks
import pandas as pd
import torch
import torch.nn.functional as F
from frozen import photos
from training_subsets import draw, get_labels

from mmclca.datasets.grouped_splits import GroupedSplits
from mmclca.evaluation.open_set import threshold_by_folds
from mmclca.models.heads import nearest_of_others
from mmclca.models.heads.nearest_heads import nearest_cosine

COUNTS = (3, 5, 10, 20)  # photos per class
NUM_DRAWS = 20  # random training sets per dataset
FOLDS, REPEATS = 5, 5


def measure(features, labels):
    """Yield a row per random training set of a dataset.

    ``features`` are (N, D), ``labels`` (N,).
    """
    unit = F.normalize(features, dim=1)
    everything = torch.ones(len(labels), dtype=torch.bool)
    for count in COUNTS:
        for number in range(NUM_DRAWS):
            train = draw(labels, everything, count, number)
            unseen = everything.index_fill(0, train, False)
            if unseen.sum() < len(train):
                continue
            splits = GroupedSplits(labels[train])
            cuts = [
                cut
                for seed in range(REPEATS)
                for cut in splits.folds(FOLDS, seed)
            ]
            similarities = nearest_of_others(features[train], cuts)
            figures = threshold_by_folds(similarities, folds=FOLDS)
            nearest = nearest_cosine(unit[train], unit[unseen])
            rate = float((nearest < figures['threshold']).float().mean())
            low, high = figures['low'], figures['high']
            yield dict(
                count=count,
                stated=figures['false_alarms'],
                measured=rate,
                width=high - low,
                inside=low <= rate <= high,
            )


def main():
    rows = []
    for network in fit_networks.list_defaults():
        probe = fit_networks.build_probe(network)
        title = fit_networks.get_name(network[0])
        for name, dataset in photos().items():
            features, _ = probe.features([*dataset.path])
            labels, _ = get_labels(dataset)
            keys = dict(network=title, set=name)
            rows += [keys | row for row in measure(features, labels)]
    table = pd.DataFrame(rows)
    print(f'{len(table)} runs, in percent')
    for keys in ('network', 'count', 'set'):
        means = table.drop(columns={'network', 'set', 'count'} - {keys})
        print((100 * means.groupby(keys).mean()).round(1))
    print(f'inside: {100 * table.inside.mean():.1f}%')


if __name__ == '__main__':
    main()
