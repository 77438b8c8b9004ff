# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compare frozen networks with token reduction to the full networks."""

from functools import cache, partial

import numpy as np
import torch
import torch.nn.functional as F
from frozen import FILES, Frozen, photos
from mmengine.config import Config
from tables import kept, read_machine, select

from mmclca.apis.probe import LabeledFeatures, fit_linear
from mmclca.apis.probe.classifiers import ProbeData
from mmclca.apis.probe.fold_scores import choose_setting, prepare_fold_scores
from mmclca.apis.probe.settings import RIDGE
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.evaluation.cost import count_config
from mmclca.utils.provenance import provenance

GRID = Config.fromfile('configs/sweeps/reducers.py').to_dict()
STUDY = 'reducers'
MOST = 10  # test photos per class
READ = 9  # layers with averaged tokens


def values():
    """Return the values for the template."""
    networks = [Frozen(backbone) for backbone in FILES]
    for backbone, rate in GRID['runs']:
        networks += [
            Frozen(backbone, method, rate, options, row)
            for row, (method, options) in GRID['methods'].items()
        ]
    rows = kept(STUDY, measure, [(identify(x), (x,)) for x in networks])
    return dict(facts=read_machine(STUDY), means=partial(means, rows))


def identify(network):
    """Return the columns identifying a network."""
    columns = dict(
        backbone=network.backbone, row=network.row or network.method
    )
    return columns | dict(keep_rate=network.keep_rate)


def measure(network):
    """Compare a network with the full one; gives a row per dataset."""
    sets = [name for name in photos() if name != 'leaf40_white']
    cost = count_config(network.config(out_type='cls_average').model)
    columns = dict(gmacs=cost.flops / 1e9, commit=provenance()['commit'])
    return [
        dict(set=name, **compare(network, name), **columns) for name in sets
    ]


def compare(network, name):
    """Compare a network with the full ViT on a dataset."""
    few = tested_few(photos()[name])
    dataset = photos()[name][few.numpy()]
    cls, scores, averages = read(network, name, few)
    full_cls, full_scores, _ = read(Frozen(network.backbone), name, few)
    same = scores.argmax(1) == full_scores.argmax(1)
    return dict(
        cosine=F.cosine_similarity(cls, full_cls).mean().item(),
        agreement=100 * float(same.sum()) / len(same),
        cls=probe(cls, dataset),
        layers=probe(averages, dataset),
    )


def tested_few(dataset):
    """Return which photos are read: all to learn from, and ten of a class
    at equal distances to test with."""
    classes = dataset.groupby(['split', 'label'])
    rank, step = classes.cumcount(), classes.path.transform('size') // MOST
    step = step.clip(lower=1)
    few = (rank % step == 0) & (rank < MOST * step)
    return torch.tensor((few | (dataset.split == 'train')).to_numpy())


def read(network, name, few):
    """Return normalized CLS, ImageNet scores, and average features."""
    table = network.features(name)[few]
    (scale, shift), (weight, bias) = last_layers(network.weights)
    cls = F.layer_norm(table[:, -1, 0], table.shape[-1:], scale, shift, 1e-6)
    scores = F.linear(cls, weight, bias)
    averages = F.layer_norm(table[:, :READ, 1], table.shape[-1:])
    return cls, scores, averages.flatten(1)


@cache
def last_layers(weights):
    """Return weight and bias for the last norm and the classifier."""
    state = open_checkpoint(str(weights)).weights
    parts = 'weight', 'bias'
    return [[state[f'{x}.{part}'] for part in parts] for x in ('norm', 'head')]


def probe(x, dataset):
    """Return the ridge regression accuracy in percent; three-fold
    cross-validation chooses the regularization strength."""
    labels = torch.tensor(dataset.label.to_numpy())
    train_mask = torch.tensor((dataset.split == 'train').to_numpy())
    number = 1 + int(labels.max())
    data = LabeledFeatures(x[train_mask], labels[train_mask], number)
    scores = prepare_fold_scores(ProbeData.from_features(data, RIDGE))
    every = np.arange(len(scores.data.labels))
    setting = scores.data.settings[choose_setting(scores, every, 3, seed=0)]
    fitted = fit_linear(data, setting=setting)
    table = fitted.scores(x[~train_mask]).argmax(1)
    return round(100 * float((table == labels[~train_mask]).float().mean()), 4)


def means(rows, backbone, keep_rate):
    """Return the means over datasets by reducer, the nearest to the full
    network first."""
    rows = select(rows, dict(backbone=backbone))
    rows = rows[rows.keep_rate.isin([keep_rate, 1.0])]
    table = rows.groupby('row').mean(numeric_only=True)
    table['lowest'] = rows.groupby('row').cosine.min()
    table = table.sort_values('cosine', ascending=False)
    return table.to_dict('index')
