# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Unknown-class detection on several datasets."""

from functools import cache, partial

import numpy as np
import torch
import torch.nn.functional as F
from frozen import FEATURES, Frozen, photos
from mmengine.config import Config
from tables import kept, select
from training_subsets import NUM_DRAWS, draws, get_labels

from mmclca.apis.probe import LabeledFeatures, fit_linear, out_of_fold
from mmclca.evaluation.open_set import auroc, max_softmax, threshold_by_folds
from mmclca.models.heads import nearest_of_others
from mmclca.models.heads.nearest_heads import nearest_cosine

GRID = Config.fromfile('configs/sweeps/fine_tuning.py').to_dict()
NUM_LAYERS = 9
PARTS = [FEATURES.index(x) for x in ('cls', 'average', 'std')]
COUNTS = (3, 10)  # photos per class
ALIKE = {'leaf40', 'leaf40_white'}  # the same leaves


def values():
    """Return the template values: a function for means over datasets."""
    rows = kept('few_photos_unknown', measure, [({}, ())])
    return dict(strangers=partial(means, rows))


def measure():
    """Measure unknown-class detection per training subset."""
    return [
        dict(default=title, set=name, count=count, **detection)
        for title in GRID['defaults']
        for count in COUNTS
        for name in photos()
        for detection in measured(title, name, count)
    ]


@cache
def read(title, name):
    """Return features for a dataset with a default of ``fit``, (N, V, D)."""
    features = Frozen(**GRID['defaults'][title]).views(name)
    features = F.layer_norm(features, features.shape[-1:])
    return features[:, :, :NUM_LAYERS, PARTS].flatten(2).transpose(0, 1)


def measured(title, name, count):
    """Yield detection results for held-out classes (a third), and for other
    datasets."""
    features = read(title, name)
    labels, tested = get_labels(photos()[name])
    number = 1 + int(labels.max())
    other = torch.cat(
        [
            read(title, x)[get_labels(dataset)[1], 0][::5]
            for x, dataset in photos().items()
            if x != name and {x, name} != ALIKE
        ]
    )
    for draw in range(NUM_DRAWS):
        order = np.random.RandomState(draw).permutation(number)
        known_labels = torch.from_numpy(np.sort(order[number // 3 :]))
        is_known = torch.isin(labels, known_labels)
        drawn = [*draws(labels, ~tested & is_known, count)][draw]
        places = {
            'same set': features[tested & ~is_known, 0],
            'other sets': other,
        }
        yield compare(
            features[drawn],
            torch.searchsorted(known_labels, labels[drawn]),
            len(known_labels),
            features[tested & is_known, 0],
            places,
        )


def compare(views, labels, number, tested, places):
    """Compare known-class test photos with unknown classes."""
    data = LabeledFeatures(views, labels, number)
    folds, features = out_of_fold(data), views[:, 0]
    fitted = fit_linear(data, setting=folds.setting)
    cut = threshold_by_folds(nearest_of_others(features, folds.splits))

    def nearest(x):
        return nearest_cosine(F.normalize(features, dim=1), x)

    def softmax(x):
        return max_softmax(fitted.scores(x) / folds.temperature)

    row = dict(expected=cut['false_alarms'], high=cut['high'])
    row['alarms'] = (nearest(tested) < cut['threshold']).double().mean()
    for position, x in places.items():
        for score in (nearest, softmax):
            title = f'{score.__name__}, {position}'
            row[title] = auroc(score(tested), score(x))
        below = nearest(x) < cut['threshold']
        row[f'rejected, {position}'] = below.double().mean()
    return {key: round(float(value), 4) for key, value in row.items()}


def means(rows, default, count):
    """Return the means over datasets, which count equally."""
    rows = select(rows, dict(default=default, count=count))
    features = rows.groupby('set').mean(numeric_only=True)
    return features.mean().to_dict()
