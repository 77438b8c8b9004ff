# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Hashes for photo lists, to notice other photos or training subsets."""

from hashlib import sha256

import torch
from frozen import DATA, read_dataset
from tables import read, select
from training_subsets import draws, get_labels

from .readings import COUNT

SPLITS = 'few_tokens_splits'


def describe_split(name):
    """Return counts and hashes for a dataset.

    ``sha256`` hashes the lines ``path label split`` for all photos in order,
    ``subset_0`` and so on the lines ``path`` for a training subset.
    """
    dataset = read_dataset(name)
    folders = DATA / name, DATA / 'sets' / name
    paths = dataset.path
    for folder in folders:
        paths = paths.str.removeprefix(f'{folder}/')
    lines = paths + ' ' + dataset.label.astype(str) + ' ' + dataset.split
    labels, is_test = get_labels(dataset)
    subsets = draws(labels, ~is_test, COUNT)
    hashes = {
        f'subset_{number}': hash_lines(paths[subset.numpy()])
        for number, subset in enumerate(subsets)
    }
    return dict(
        dataset=name,
        classes=1 + int(labels.max()),
        train=int((~is_test).sum()),
        test=int(torch.sum(is_test)),
        sha256=hash_lines(lines),
        **hashes,
    )


def hash_lines(lines):
    """Hash text lines."""
    return sha256(''.join(f'{x}\n' for x in lines).encode()).hexdigest()


def find_difference(name):
    """Return how a dataset differs from the frozen split, or ''."""
    table = read(SPLITS)
    if table.empty or select(table, dict(dataset=name)).empty:
        return 'it has no frozen split'
    rows = select(table, dict(dataset=name))
    present = describe_split(name)
    stored = rows.iloc[0].to_dict()
    names = [x for x, value in present.items() if value != stored[x]]
    if not names:
        return ''
    return f'{", ".join(names)} differ from {SPLITS}.csv'
