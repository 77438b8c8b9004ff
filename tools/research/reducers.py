# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How near frozen networks with each reducer come to the full ones."""

from pathlib import Path

import pandas as pd
import torch.nn.functional as F
from features import AVERAGE, CLS, Frozen, data_sets
from mmengine.config import Config
from probes import fit_and_test, kept

from mmclca.checkpoints.opening import open_checkpoint
from mmclca.evaluation.cost import count_config
from mmclca.sweep.compose import NONE
from mmclca.sweep.report import markdown
from mmclca.utils.provenance import provenance

GRID = Config.fromfile('configs/sweeps/reducers.py').to_dict()
RESULTS = Path('docs/results/reducers')
RIDGE = dict(classifier='ridge', strength=None)
READ = 9  # layers whose averages are read, as by fit


def values(out):
    """Return what the template asks for."""
    runs = [
        kept(RESULTS / f'{one.name}.json', measure, one) for one in networks()
    ]
    return dict(runs=runs, table=lambda *which: table(runs, *which))


def networks():
    """Return the networks of the grid, full ones before reduced ones."""
    full = {backbone: Frozen(backbone) for backbone, _ in GRID['runs']}
    return [*full.values()] + [
        Frozen(backbone, row, method, keep_rate, options)
        for backbone, keep_rate in GRID['runs']
        for row, (method, options) in GRID['methods'].items()
    ]


def measure(one):
    """Compare a network with the full one, set by set."""
    cost = count_config(one.config().model)
    sets = {name: compare(one, *draw) for name, draw in data_sets().items()}
    settings = dict(
        backbone=one.backbone, row=one.row, keep_rate=one.keep_rate
    )
    return dict(settings, sets=sets, gmacs=cost.flops / 1e9, **provenance())


def compare(one, train, test):
    """Compare a network with the full one on photographs of a set."""
    labels = train | test
    features = one.read(labels)
    whole = Frozen(one.backbone).read(labels)
    (cls, scores), (whole_cls, whole_scores) = (
        last(one, x) for x in (features, whole)
    )
    same = scores.argmax(1) == whole_scores.argmax(1)
    averages = F.layer_norm(features[:, :READ, AVERAGE], features.shape[-1:])
    read = dict(cls=cls, layers=averages.flatten(1))
    return dict(
        cosine=F.cosine_similarity(cls, whole_cls).mean().item(),
        agreement=100 * same.float().mean().item(),
        **{name: accuracy(x, labels, train, test) for name, x in read.items()},
    )


def accuracy(features, labels, train, test):
    """Return the accuracy of a ridge regression, in per cent."""
    features = dict(zip(labels, features, strict=True))
    return fit_and_test(RIDGE, features, train, test)['accuracy']


def last(one, features):
    """Return CLS after the last norm, and the scores of ImageNet's classes."""
    state = open_checkpoint(str(one.weights))
    state = state.get('model', state.get('state_dict', state))
    norm = state['norm.weight'], state['norm.bias'], 1e-6
    cls = features[:, -1, CLS]
    cls = F.layer_norm(cls, cls.shape[-1:], *norm)
    return cls, F.linear(cls, state['head.weight'], state['head.bias'])


def table(runs, backbone, keep_rate):
    """Return a row a reducer, the means over sets."""
    rows = []
    for run in runs:
        all_tokens = run['row'] == NONE
        if run['backbone'] != backbone:
            continue
        if all_tokens or run['keep_rate'] == keep_rate:
            sets = pd.DataFrame(run['sets'].values())
            mean = sets.mean()
            rows.append(
                {
                    'reducer': 'all tokens' if all_tokens else run['row'],
                    'cosine': f'{mean.cosine:.3f}',
                    'lowest': f'{sets.cosine.min():.3f}',
                    'same class (%)': f'{mean.agreement:.1f}',
                    'probe, CLS (%)': f'{mean.cls:.1f}',
                    'probe, layers 0 to 8 (%)': f'{mean.layers:.1f}',
                    'GMACs': f'{run["gmacs"]:.3f}',
                }
            )
    rows.sort(key=lambda row: row['cosine'], reverse=True)
    return markdown(pd.DataFrame(rows), ('reducer',))
