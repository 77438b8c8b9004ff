# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy of fit on four datasets on which nothing was chosen."""

import frontier
from frozen import DEPTH, FILES
from mmengine.config import Config
from tables import half_width, kept, read_machine, select

from mmclca.fitting.candidates import NO_REDUCTION
from mmclca.models import Variant

GRID = Config.fromfile('configs/sweeps/fresh_datasets.py').to_dict()
STUDY = 'fresh_datasets'
NAMES = tuple(GRID['datasets'])
RIVALS = GRID['rivals']


def values():
    """Return the values for the template."""
    wanted = [(frontier.identify(x), x) for x in networks()]
    table = kept(STUDY, measure, wanted)
    return dict(
        facts=read_machine(STUDY),
        names=NAMES,
        rivals=RIVALS,
        zip=zip,
        row=lambda **columns: with_mean(select(table, columns).iloc[0]),
        gain=lambda network, rival: gain(table, network, rival),
    )


def networks():
    """List pairs of weights and variant: the full ViT and the default."""
    layers = (*range(DEPTH),)
    for file in FILES.values():
        yield file, Variant(**NO_REDUCTION, img_size=224, layers=layers)
        name = frontier.identify((file, Variant(None, 1.0, 224)))['network']
        method = frontier.GRID['defaults'][name]
        reduced = dict(NO_REDUCTION, method=method, keep_rate=0.5)
        yield file, Variant(**reduced, img_size=224, layers=layers)


def measure(file, variant):
    """Return rows for ``fit`` and, with the full ViT, for its rivals."""
    classifiers = frontier.FIT, *frontier.GRID['alternatives']
    rows = frontier.measure(file, variant, NAMES)
    return [x for x in rows if x['classifier'] in classifiers]


def with_mean(row):
    """Return a row as a dict, with its mean over the datasets."""
    return dict(row, mean=row[[*NAMES]].mean())


def gain(table, network, rival):
    """Return the mean gain of ``fit`` over a rival on the full ViT, and its
    95% t interval over datasets, in points."""
    method = frontier.GRID['defaults'][network]
    columns = dict(network=network, classifier=frontier.FIT, method=method)
    full = dict(network=network, classifier=rival, method='none')
    pair = [select(table, x).iloc[0] for x in (columns, full)]
    ours, other = (x[[*NAMES]].to_numpy(float) for x in pair)
    paired = ours - other
    mean, half = paired.mean(), half_width(paired)
    return mean, mean - half, mean + half
