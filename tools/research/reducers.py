# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How near frozen networks with each reducer come to the full ones.

``MMCLCA_DATA`` and ``MMCLCA_WEIGHTS`` name the folders of data sets and of
weights, ``MMCLCA_FEATURES`` where features are kept.
"""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from mmengine.config import Config
from probes import fit_and_test, kept, read_list

from mmclca.apis.loading import build_classifier
from mmclca.checkpoints.loading import load_trained
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.datasets.batches import Preparation, batches
from mmclca.datasets.photographs import read_photographs
from mmclca.evaluation.cost import count_config
from mmclca.models import with_layer_fusion
from mmclca.sweep.compose import NONE, Cell, compose
from mmclca.sweep.report import markdown
from mmclca.utils.provenance import provenance

GRID = Config.fromfile('configs/sweeps/reducers.py').to_dict()
RESULTS = Path('docs/results/reducers')
DATA = Path(os.environ.get('MMCLCA_DATA', 'data'))
WEIGHTS = Path(os.environ.get('MMCLCA_WEIGHTS', 'weights'))
KEPT = Path(os.environ.get('MMCLCA_FEATURES', 'work_dirs/features'))
MOST = 10  # test photographs of a class that are read
READ = 9  # layers whose averages are read
RIDGE = dict(classifier='ridge', strength=None)
# titles and formats of the columns of a table
COLUMNS = {
    'row': ('reducer', '{}'),
    'cosine': ('cosine', '{:.3f}'),
    'lowest': ('lowest', '{:.3f}'),
    'agreement': ('same class (%)', '{:.1f}'),
    'cls': ('probe, CLS (%)', '{:.1f}'),
    'layers': ('probe, layers 0 to 8 (%)', '{:.1f}'),
    'gmacs': ('GMACs', '{:.3f}'),
}


def values():
    """Return what the template asks for."""
    networks = [(backbone, NONE, 1.0) for backbone in GRID['weights']]
    for backbone, rate in GRID['runs']:
        networks += [(backbone, row, rate) for row in GRID['methods']]
    files = [RESULTS / f'{name_of(one)}.json' for one in networks]
    runs = [
        kept(file, measure, one)
        for file, one in zip(files, networks, strict=True)
    ]
    return dict(runs=runs, table=lambda *which: table(runs, *which))


def name_of(network):
    """Name the files of a network: its backbone, row and keep rate."""
    backbone, row, keep_rate = network
    return f'{backbone}_{row}_kr{100 * keep_rate:g}'


def measure(network):
    """Compare a network with the full one, set by set."""
    found = {name: compare(network, own) for name, own in photographs()}
    cost = count_config(config_of(network).model)
    names = dict(zip(('backbone', 'row', 'keep_rate'), network, strict=True))
    return dict(names, sets=found, gmacs=cost.flops / 1e9, **provenance())


def config_of(network):
    """Return the config of a network."""
    backbone, row, rate = network
    method, options = GRID['methods'].get(row, (NONE, {}))
    config = compose(
        Cell('leaf40', backbone, method, rate, 224, 'base', seed=1)
    )
    if options:
        config.model.backbone.reducer.update(options)
    return config


def compare(network, own):
    """Compare a network with the full one on photographs of a set."""
    cls, scores, averages = read(network, own)
    full_cls, full_scores, _ = read((network[0], NONE, 1.0), own)
    draw = [
        dict(zip(part.path, part.label, strict=True))
        for part in (own[own.split == 'train'], own[own.split == 'test'])
    ]
    probes = {}
    for name, x in (('cls', cls), ('layers', averages)):
        x = dict(zip(own.path, x, strict=True))
        probes[name] = fit_and_test(RIDGE, x, *draw)['accuracy']
    same = scores.argmax(1) == full_scores.argmax(1)
    cosine = F.cosine_similarity(cls, full_cls).mean().item()
    agreement = 100 * float(same.sum()) / len(same)
    return dict(cosine=cosine, agreement=agreement, **probes)


def read(network, own):
    """Return CLS after the last norm, scores of ImageNet, and averages."""
    file = KEPT / own.set.iloc[0] / f'{name_of(network)}.npy'
    weights = str(WEIGHTS / GRID['weights'][network[0]])
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        found = features(config_of(network), weights, [*own.path])
        np.save(file, found.half().numpy())
    found = torch.from_numpy(np.load(file)).float()
    norm, head = last_layers(weights)
    cls = F.layer_norm(found[:, -1, 0], found.shape[-1:], *norm, 1e-6)
    scores = F.linear(cls, *head)
    averages = F.layer_norm(found[:, :READ, 1], found.shape[-1:])
    return cls, scores, averages.flatten(1)


@cache
def last_layers(weights):
    """Return weight and bias of the last norm, and of the classifier."""
    state = open_checkpoint(weights)
    state = state.get('model', state.get('state_dict', state))
    parts = 'weight', 'bias'
    return [[state[f'{x}.{part}'] for part in parts] for x in ('norm', 'head')]


@torch.inference_mode()
def features(config, weights, files):
    """Compute CLS and the average of the tokens left, (N, layers, 2, C)."""
    torch.manual_seed(0)  # of reducers that have to be trained
    config.model = with_layer_fusion(config.model, range(12), 'cls_average')
    model = build_classifier(config).eval()
    model.init_weights()
    may_be_new = ('head.', 'backbone.reducer.')
    new = [x for x in model.state_dict() if x.startswith(may_be_new)]
    load_trained(model, weights, new)
    read = [
        torch.stack(model.backbone(batch.images), dim=1)
        for batch in batches(model, files, prepare=Preparation(config))
    ]
    return torch.cat(read).unflatten(2, (2, -1))


@cache
def photographs():
    """Return the photographs of each set: path, label and split.

    Of the test photographs of a class there are ten at equal distances.
    """
    rows = [
        ('leaf40', str(DATA / 'leaf40' / path), label, split)
        for split in ('train', 'test')
        for path, label in read_list(DATA / f'leaf40/{split}.txt').items()
    ]
    for folder in sorted(DATA.glob('sets/*/')):
        found = read_photographs(folder)
        parts = found.paths, found.labels, found.splits
        rows += [(folder.name, *x) for x in zip(*parts, strict=True)]
    table = pd.DataFrame(rows, columns=['set', 'path', 'label', 'split'])
    classes = table.groupby(['set', 'split', 'label'])
    rank, step = classes.cumcount(), classes.path.transform('size') // MOST
    step = step.clip(lower=1).where(table.split == 'test', 1)
    few = (rank % step == 0) & (rank < MOST * step)
    return [*table[few | (table.split == 'train')].groupby('set')]


def table(runs, backbone, keep_rate):
    """Return a row a reducer, the means over sets."""
    rows = []
    for run in runs:
        rates = keep_rate, 1.0
        if run['backbone'] == backbone and run['keep_rate'] in rates:
            sets = pd.DataFrame(run['sets'].values())
            rows.append(dict(sets.mean(), lowest=sets.cosine.min(), **run))
    rows = pd.DataFrame(rows).sort_values('cosine', ascending=False)
    shown = {
        title: rows[key].map(form.format)
        for key, (title, form) in COLUMNS.items()
    }
    return markdown(pd.DataFrame(shown), ('reducer',))
