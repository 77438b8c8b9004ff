# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A few photographs a class, of several sets: frozen networks and readings."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from features import Frozen, data_sets
from mmengine.config import Config
from probes import kept
from scipy.stats import t

from mmclca.apis.probe import fit_linear
from mmclca.evaluation.cost import count_config
from mmclca.sweep.compose import NONE
from mmclca.sweep.report import markdown
from mmclca.utils.provenance import provenance

GRID = Config.fromfile('configs/sweeps/few_photographs.py').to_dict()
RESULTS = Path('docs/results/few_photographs')
NUM_DRAWS = 5


def values(out):
    """Return what the template asks for."""
    runs = [
        kept(RESULTS / f'{one.name}.json', measure, one) for one in networks()
    ]
    rows = to_rows(runs)
    return dict(
        rows=rows, table=lambda *ways: table(rows, ways), difference=difference
    )


def networks():
    """Return the networks of the grid."""
    return [Frozen(**settings) for settings in GRID['networks']]


def measure(one):
    """Return costs of a network by depth, and accuracies of all readings."""
    depths = sorted({layers[-1] + 1 for layers, _ in GRID['readings'].values()})
    gmacs = {
        depth: count_config(one.config(range(depth)).model).flops / 1e9
        for depth in depths
    }
    accuracy = {
        name: accuracies(one.read(train | test), train, test)
        for name, (train, test) in data_sets().items()
    }
    return dict(network=vars(one), gmacs=gmacs, sets=accuracy, **provenance())


def accuracies(features, train, test):
    """Return accuracies of all draws in per cent, by reading and classifier.

    Args:
        features (Tensor): Of training and test images, (N, 12, 3, C).
        train (dict[str, int]): Labels of the training images.
        test (dict[str, int]): Those of the test images.
    """
    features = F.layer_norm(features, features.shape[-1:])
    labels, right = torch.tensor([*train.values()]), [*test.values()]
    found = {}
    for name, (layers, parts) in GRID['readings'].items():
        read = features[:, layers][:, :, parts].flatten(1)
        own, held_out = read[: len(labels)], read[len(labels) :]
        for classifier, count in product(GRID['classifiers'], GRID['counts']):
            key = f'{name}, {classifier}, {count}'
            found[key] = [
                accuracy(own[i], labels[i], held_out, right, classifier)
                for i in draws(labels, count)
            ]
    return found


def draws(labels, count):
    """Draw some images of each class, several times; fewer where there are no
    more."""
    for number in range(NUM_DRAWS):
        order = np.random.RandomState(number).permutation(len(labels))
        ranks = pd.Series(labels[order]).groupby(labels[order]).cumcount()
        yield np.sort(order[ranks < count])


def accuracy(x, labels, held_out, right, classifier):
    """Return the accuracy of a classifier in per cent."""
    kind, strength = GRID['classifiers'][classifier]
    fitted = fit_linear(x, labels, 1 + max(right), kind, strength)
    found = fitted.scores(held_out).argmax(1)
    return round(100 * float((found == torch.tensor(right)).float().mean()), 3)


def to_rows(runs):
    """Return a row a network, reading, classifier, set, count and draw."""
    rows = []
    for run in runs:
        for name, found in run['sets'].items():
            for key, by_draw in found.items():
                reading, classifier, count = key.split(', ')
                depth = GRID['readings'][reading][0][-1] + 1
                rows += [
                    dict(
                        run['network'],
                        reading=reading,
                        classifier=classifier,
                        count=int(count),
                        set=name,
                        draw=draw,
                        accuracy=share,
                        gmacs=run['gmacs'][str(depth)],
                    )
                    for draw, share in enumerate(by_draw)
                ]
    return pd.DataFrame(rows)


def of_sets(rows, way):
    """Return the accuracies of a way, means over draws, by set."""
    for name, value in way.items():
        rows = rows[rows[name] == value]
    return rows.groupby('set').accuracy.mean()


def difference(rows, one, other):
    """Return the paired difference of two ways, and its 95 % t interval over
    sets, in points."""
    paired = of_sets(rows, one) - of_sets(rows, other)
    half = t.ppf(0.975, len(paired) - 1) * paired.sem()
    mean = paired.mean()
    return f'{mean:+.1f} [{mean - half:+.1f}, {mean + half:+.1f}]'


def table(rows, ways):
    """Return a row a way: its mean over sets, and accuracy by set."""
    lines = []
    for title, way in ways:
        found = of_sets(rows, way)
        line = {'': title, 'mean (%)': f'{found.mean():.1f}'}
        lines.append(line | {k: f'{v:.1f}' for k, v in found.items()})
    return markdown(pd.DataFrame(lines), ('',))
