# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy against cost with three photos per class: fit and its rivals.

Every candidate of ``fit``, small CNNs, and linear classifiers on frozen
networks as users would train them.
"""

import os
import re
from functools import cache
from math import prod
from pathlib import Path

import pandas as pd
import torch
from frozen import DATASETS, DEPTH, FILES, WEIGHTS, photos
from mmengine.config import Config
from tables import kept, read, read_machine, select
from training_subsets import draws, get_labels

from mmclca.apis import Probe
from mmclca.apis.probe import (
    ClassifierSettings,
    FoldSettings,
    LabeledFeatures,
    ProbeSetting,
    fit_linear,
)
from mmclca.benchmark.timing import time_models
from mmclca.evaluation.cost import count_config
from mmclca.fitting.candidates import DEIT, VIT_TINY
from mmclca.fitting.model_config import build_config
from mmclca.fitting.plan import CROP_ZOOMS
from mmclca.fitting.weights import find_weights
from mmclca.models import Variant
from mmclca.models.heads import get_feature_subsets
from mmclca.utils.provenance import provenance

GRID = Config.fromfile('configs/sweeps/frontier.py').to_dict()
FEATURES = Path(os.environ.get('MMCLCA_FEATURES', 'work_dirs/features'))
STUDY, TIMES = 'frontier', 'frontier_times'
FACTS = ['network', 'method', 'img_size']
COLUMNS = 'classifier', 'gmacs', 'commit', 'mean', 'ms'
FIT = 'fit'


def values():
    """Return the values for the template."""
    table = table_of_rows()
    sets = get_dataset_columns(table)
    return dict(
        facts=read_machine(STUDY),
        row=lambda **columns: select(table, columns).iloc[0],
        best_at=lambda gmacs, *names: best_at(table, gmacs, names),
        rows_of_fit=lambda *names: rows_of_fit(table, names),
        by_dataset=lambda: [*zip(*defaults_by_set(table, sets), strict=True)],
    )


def table_of_rows():
    """Return all rows with mean accuracy and time; measure missing ones."""
    wanted = [(identify(network), network) for network in networks()]
    rows = kept(STUDY, measure, wanted)
    mean = rows[get_dataset_columns(rows)].mean(axis=1)
    times = read(TIMES)
    new = [x for x in networks() if select(times, identify(x)).empty]
    if new:
        times = kept(TIMES, milliseconds, [(identify(new[0]), (new, times))])
    return rows.assign(mean=mean).merge(times, on=FACTS)


def networks():
    """List pairs of weights and variant: candidates of fit, and CNNs."""
    tables = dict(zip(FILES.values(), (DEIT, VIT_TINY), strict=True))
    for file, table in tables.items():
        for method, side, _ in table:
            yield (
                file,
                Variant(**method, img_size=side, layers=(*range(DEPTH),)),
            )
    for file, sides in GRID['cnns'].items():
        yield from ((file, Variant(None, 1.0, side)) for side in sides)


@cache
def pretrained(file):
    return find_weights(str(WEIGHTS / file))


def identify(network):
    """Return the columns that identify a network, (file, variant)."""
    file, variant = network
    name = re.split(r'_patch|_reparam', Path(file).stem)[0]
    method = variant.method or 'none'
    return dict(network=name, method=method, img_size=variant.img_size)


def is_default(network):
    """Return whether a network is a default of ``fit``."""
    columns_of_row = identify(network)
    default = GRID['defaults'].get(columns_of_row['network'])
    return (
        columns_of_row['method'] == default
        and columns_of_row['img_size'] == 224
    )


def build_probe(network):
    """Return a linear probe on a network, with cached features."""
    file, variant = network
    config = build_config(pretrained(file), variant, 2)
    source = str(WEIGHTS / file)
    return Probe(config, source, 'cpu', FEATURES, zooms=CROP_ZOOMS)


def measure(file, variant, names=DATASETS):
    """Yield one row per classifier: cost, and accuracy per dataset."""
    probe = build_probe((file, variant))
    gmacs = count_config(probe.model._config.model).flops / 1e9
    read = select_columns(file, variant, probe.model.head)
    tables = photos(names)
    accuracies = [
        mean_accuracies(probe, dataset, read) for dataset in tables.values()
    ]
    commit = provenance()['commit']
    for classifier in accuracies[0]:
        means = {
            name: round(network[classifier], 2)
            for name, network in zip(tables, accuracies, strict=True)
        }
        yield dict(classifier=classifier, gmacs=gmacs, commit=commit, **means)


def mean_accuracies(probe, dataset, columns):
    """Return the mean accuracy per classifier in percent over random splits.

    ``columns`` selects features for each classifier except that of fit.
    """
    labels, tested = get_labels(dataset)
    training_features = probe.views(dataset.path[~tested.numpy()].tolist())[0]
    new = probe.features(dataset.path[tested.numpy()].tolist())[0]
    accuracies = {}
    for drawn in draws(
        labels[~tested], torch.ones(len(training_features)) > 0, 3
    ):
        views, classes = training_features[drawn], labels[~tested][drawn]
        for classifier, scores in scored(probe, views, classes, new, columns):
            right = scores.argmax(1) == labels[tested]
            accuracies.setdefault(classifier, []).append(
                100 * right.float().mean().item()
            )
    return {
        classifier: sum(x) / len(x) for classifier, x in accuracies.items()
    }


def scored(probe, views, labels, new, columns):
    """Yield the class scores of test photos, as fit and as users get them."""
    number = 1 + int(labels.max())
    classes = [*map(str, range(number))]
    probe.fit(views, labels, classes, folds=FoldSettings(folds=3))
    yield FIT, probe.scores(new)
    for title, (selected, method) in columns.items():
        # users have one view and a classifier, fit's other readings have all
        training = (views[:, 0] if method else views)[..., selected]
        data = LabeledFeatures(training, labels, number)
        classifier, setting = ClassifierSettings(), None
        if method:
            name, alpha = method
            classifier = ClassifierSettings(name)
            setting = ProbeSetting(alpha)
        fitted = fit_linear(data, classifier, setting)
        yield title, fitted.scores(new[:, selected])


def select_columns(file, variant, head):
    """Return the columns of the features and the method by classifier.

    Users train classifiers on all tokens. Readings that fit could always
    take are measured with its default method.
    """
    if is_default((file, variant)):
        return {
            classifier: (columns, None)
            for classifier, columns in readings(head).items()
        }
    if variant.method:
        return {}
    return {
        f'{reading}, {method}': (columns, (method, strength))
        for reading, columns in select_user_columns(head).items()
        for method, strength in GRID['classifiers'].items()
    }


def select_user_columns(head):
    """Return the columns of the features that users read, by name."""
    if head.num_parts == 2:  # mean and deviation of the stages of a CNN
        *_, last = head.in_channels
        every = torch.arange(2 * sum(head.in_channels))
        return {'last stage': every[-2 * last : -last], 'all stages': every}
    parts = list_layer_columns(head)
    return {
        'CLS, last layer': parts[-1, 0],
        'CLS and average, last layer': parts[-1, :2].flatten(),
        'CLS and average, all layers': parts[:, :2].flatten(),
    }


def readings(head):
    """Return the columns that fit could always read, by name."""
    parts, (early, late) = list_layer_columns(head), get_feature_subsets(head)
    return {
        'layers 0 to 8': parts[:9].flatten(),
        'CLS and std': parts[:, ::2].flatten(),
        'all': parts.flatten(),
        'first reading': early,
        'second reading': late,
    }


def list_layer_columns(head):
    """Return the columns of CLS, average and deviation by layer (12, 3, C)."""
    sizes = head.num_layers, 3, head.in_channels
    return torch.arange(prod(sizes)).view(sizes)


def milliseconds(pairs, stored):
    """Measure latencies of networks with ONNX Runtime, interleaved.

    If ``stored`` has times of another day, the default of ``fit`` is measured
    again, and the new times are scaled by its ratio.
    """
    default = next(x for x in networks() if is_default(x) and 'vit_' in x[0])
    reference = tuple(identify(default).values())
    models = {
        tuple(identify((file, x)).values()): build_config(
            pretrained(file), x, 10
        ).model
        for file, x in [default, *pairs]
    }
    times, _ = time_models(models, 'onnx', 'cpu')
    scale = 1.0
    if not stored.empty:
        earlier = select(stored, dict(zip(FACTS, reference, strict=True)))
        scale = earlier.ms.item() / times.pop(reference)
    return [
        dict(zip(FACTS, key, strict=True), ms=scale * ms)
        for key, ms in times.items()
    ]


def get_dataset_columns(rows):
    """Return the accuracy columns, one per dataset."""
    return [*rows.columns.drop([*FACTS, *COLUMNS], errors='ignore')]


def best_at(table, gmacs, names):
    """Return the most accurate row of ``fit`` within a budget, as in fit."""
    dataset = table[table.network.isin(names) & (table.classifier == FIT)]
    return dataset[dataset.gmacs <= 1.01 * gmacs].nlargest(1, 'mean').iloc[0]


def rows_of_fit(table, names):
    """Return the rows of ``fit`` by network, the most expensive first."""
    dataset = select(table, dict(classifier=FIT))
    dataset = dataset.sort_values('gmacs', ascending=False, kind='stable')
    rows = [dataset[dataset.network == name] for name in names]
    return [row for _, row in pd.concat(rows).iterrows()]


def alternatives(table, network):
    """Return the rows of the full network as users would train it."""
    full = select(table, dict(network=network, method='none', img_size=224))
    return full[full.classifier.isin(GRID['alternatives'])]


def defaults_by_set(table, sets):
    """Return the accuracy of the default of ``fit``, and of the best
    alternative of users, as rows by dataset for each network."""
    rows = []
    for network, method in GRID['defaults'].items():
        columns_of_row = dict(
            network=network, method=method, img_size=224, classifier=FIT
        )
        ours = select(table, columns_of_row).iloc[0]
        best = alternatives(table, network)[sets].max()
        rows.append([dict(set=x, ours=ours[x], best=best[x]) for x in sets])
    return rows
