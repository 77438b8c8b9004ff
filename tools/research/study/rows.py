# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Table rows: accuracy, cost and similarity per network."""

from functools import cache

import numpy as np
from frozen import DEPTH
from tables import half_width

from mmclca.evaluation.cost import count_config
from mmclca.utils.provenance import provenance

from .accuracy import measure_accuracy, predict, predict_full
from .early_layers import NUM_EARLY
from .features import find_crops, load_features
from .networks import GRID, Network
from .readings import ALL, AVERAGES, FIT, LAST, STRENGTHS, Reading

STUDY = 'few_tokens'
KEYS = ['network', 'method', 'keep_rate', 'img_size']
SIMILARITIES = 'keys', 'attention'
NONE = 'none'  # full network


def identify(network):
    """Return the columns that identify a network."""
    values = {key: getattr(network, key) for key in KEYS}
    return values | dict(method=network.method or NONE)


def find_full(network):
    """Return the full network with which a network is compared."""
    if network.is_vit:
        return Network(network.file)
    return Network(network.file, img_size=max(GRID['cnns'][network.file]))


def list_readings(network):
    """List features and classifiers for a network.

    Only full networks have users' classifiers and fewer layers.
    """
    readings = [Reading(ALL), Reading(LAST)]
    is_large = network.img_size == find_full(network).img_size
    if network.is_candidate and is_large:
        readings += [Reading(count=x) for x in GRID['counts']]
    if network != find_full(network):
        return readings
    if not network.is_vit:
        return readings + [Reading(x, 'logistic') for x in (ALL, LAST)]
    users = [(LAST, 'logistic')]
    users += [(x, y) for x in AVERAGES for y in STRENGTHS]
    cut = [(x, depth) for depth in GRID['depths'] for x in (ALL, LAST)]
    readings += [Reading(*pair) for pair in users]
    return readings + [Reading(x, depth=depth) for x, depth in cut]


def list_wanted(network, names):
    """List rows that a network needs, as ``tables.kept`` expects.

    Rows with the classifier in ``fit`` are measured apart, as they need
    crops.
    """
    readings = {'ridge': list_readings(network)}
    if network.is_candidate and has_crops(network, names):
        readings[FIT] = [Reading(ALL, FIT)]
    return [
        (identify(network) | dict(classifier=x), (network, names, tuple(y)))
        for x, y in readings.items()
    ]


def has_crops(network, names):
    """Return whether the features for crops in all datasets are stored."""
    networks = network, find_full(network)
    return all(find_crops(x, y).exists() for x in networks for y in names)


def measure(network, names, readings):
    """Yield one row per reading, without the columns from ``identify``."""
    shared = dict(
        license=GRID['licenses'][network.network],
        **mark(network, names[0]),
        commit=provenance()['commit'],
    )
    similarities = average_similarities(network, names)
    scores = [compare(network, name, readings) for name in names]
    for number, reading in enumerate(readings):
        accuracies, fulls, agreements = np.array(
            [dataset[number] for dataset in scores]
        ).T
        gains = accuracies - fulls
        yield dict(
            depth=reading.depth,
            features=reading.features,
            classifier=reading.classifier,
            count=reading.count,
            gmacs=round(count_gmacs(network, reading.depth), 4),
            datasets=len(names),
            mean=round(accuracies.mean(), 3),
            difference=round(gains.mean(), 3),
            half_width=round(half_width(gains), 3),
            agreement=round(agreements.mean(), 3),
            **shared,
            **dict(zip(names, accuracies, strict=True)),
            **similarities,
        )


def compare(network, name, readings):
    """Return accuracy, accuracy in the full network, and agreement (%).

    A triple per reading, for a dataset.
    """
    full = find_full(network)
    pairs = tuple(dict.fromkeys(x.for_full for x in readings))
    predicted = predict_full(full, name, pairs)
    by_reading = dict(zip(pairs, predicted, strict=True))
    scores = []
    for reading, classes in zip(
        readings, predict(network, name, readings), strict=True
    ):
        other = by_reading[reading.for_full]
        same = (classes == other).double().mean().item()
        accuracies = [measure_accuracy(x, name) for x in (classes, other)]
        scores.append((*accuracies, 100 * same))
    return scores


def mark(network, name):
    """Mark methods with arbitrary results, 1 if so.

    Parameters that need training, and random numbers in a forward pass.
    """
    is_untrained = False
    if network.method:
        reducer = network.build().backbone.reducer
        is_untrained = bool([*reducer.parameters()])
    is_random = load_features(network, name).is_random
    return dict(untrained=int(is_untrained), random=int(is_random))


def average_similarities(network, names):
    """Return the mean correlations with the full network by layer."""
    if not network.method:
        return {}
    by_dataset = [load_features(network, x).correlations for x in names]
    numbers = np.array(by_dataset)
    is_known = ~np.isnan(numbers)
    counts = is_known.sum(axis=0)
    sums = np.where(is_known, numbers, 0).sum(axis=0)
    means = np.where(counts, sums / np.maximum(counts, 1), np.nan)
    return {
        f'{part}_{layer}': round(means[row, layer], 4)
        for row, part in enumerate(SIMILARITIES)
        for layer in range(NUM_EARLY, DEPTH)
    }


@cache
def count_gmacs(network, depth):
    """Return the GMACs with some first layers."""
    return count_config(network.get_config(depth).model).flops / 1e9
