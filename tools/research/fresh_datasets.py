# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy of fit on four datasets on which nothing was chosen."""

from mmengine.config import Config
from tables import half_width, read, read_machine, select

GRID = Config.fromfile('configs/sweeps/fresh_datasets.py').to_dict()
STUDY = 'fresh_datasets'
NAMES = tuple(GRID['datasets'])
RIVALS = GRID['rivals']
METHODS = dict(deit_tiny='ATC', vit_tiny='DiffRate')  # defaults of fit


def values():
    """Return the values for the template."""
    table = read(STUDY)
    return dict(
        facts=read_machine(STUDY),
        names=NAMES,
        rivals=RIVALS,
        methods=METHODS,
        zip=zip,
        row=lambda **columns: with_mean(select(table, columns).iloc[0]),
        gain=lambda network, rival: gain(table, network, rival),
    )


def with_mean(row):
    """Return a row as a dict, with its mean over the datasets."""
    return dict(row, mean=row[[*NAMES]].mean())


def gain(table, network, rival):
    """Return the mean gain of ``fit`` over a rival on the full ViT, and its
    95% t interval over datasets, in points."""
    method = METHODS[network]
    columns = dict(network=network, classifier='fit', method=method)
    full = dict(network=network, classifier=rival, method='none')
    pair = [select(table, x).iloc[0] for x in (columns, full)]
    ours, other = (x[[*NAMES]].to_numpy(float) for x in pair)
    paired = ours - other
    mean, half = paired.mean(), half_width(paired)
    return mean, mean - half, mean + half
