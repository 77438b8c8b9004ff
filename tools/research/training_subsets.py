# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Random training subsets with a few photos per class."""

import numpy as np
import pandas as pd
import torch

NUM_DRAWS = 5


def get_labels(dataset):
    """Return the labels in a dataset, and a mask for test photos."""
    tested = torch.tensor((dataset.split == 'test').to_numpy())
    return torch.tensor(dataset.label.to_numpy()), tested


def draws(labels, candidates, count):
    """Return ``NUM_DRAWS`` random training subsets."""
    return (draw(labels, candidates, count, i) for i in range(NUM_DRAWS))


def draw(labels, candidates, count, number):
    """Return a random training subset: ``count`` images per class, or all if
    a class has fewer."""
    candidates = torch.where(candidates)[0].numpy()
    order = np.random.RandomState(number).permutation(candidates)
    ranks = pd.Series(order).groupby(labels[order].numpy()).cumcount()
    return torch.from_numpy(np.sort(order[ranks < count]))
