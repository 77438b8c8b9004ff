# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy of a classifier on cues that should not matter.

Kernel ridge regression with a Gaussian kernel, in given folds. Its baseline
are regressions on permuted labels. As labels are linear in the regression, all
permutations share one inverse per fold.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

NUM_PERMUTATIONS = 39  # the largest of 39 is exceeded by chance in 2.5%
PENALTY = 0.1
MAX_PHOTOS = 1000  # random photos, if there are more


@dataclass(frozen=True)
class ProbedAccuracy:
    """Accuracy of a probe, 0 to 1.

    Args:
        accuracy (float): Cross-validated accuracy.
        chance (float): Mean accuracy for permuted labels.
        highest (float): Highest accuracy for permuted labels.
    """

    accuracy: float
    chance: float
    highest: float


def probe_cues(
    cues: Tensor,
    labels: Tensor,
    groups: Tensor,
    splits: Sequence[tuple[np.ndarray, np.ndarray]],
) -> ProbedAccuracy | None:
    """Cross-validate a classifier on cues, next to permuted labels.

    Args:
        cues (Tensor): Facts about photos (N, D).
        labels (Tensor): Labels (N,).
        groups (Tensor): Group numbers (N,) from 0; labels of groups are
            permuted.
        splits (Sequence[tuple]): Positions of the training and test photos of
            each fold.

    Returns:
        ProbedAccuracy | None: None if cues are the same for all photos, or
        nothing is tested.
    """
    generator = torch.Generator().manual_seed(0)
    cues = scale_columns(cues.double())
    if not cues.numel():
        return None
    permuted = [labels]
    for _ in range(NUM_PERMUTATIONS):
        of_group = labels.new_zeros(int(groups.max()) + 1)
        of_group[groups] = labels
        order = torch.randperm(len(of_group), generator=generator)
        permuted.append(of_group[order][groups])
    rows = torch.stack(permuted, dim=1)  # (N, P)
    kept = torch.randperm(len(labels), generator=generator)[:MAX_PHOTOS]
    correct, tested = torch.zeros(rows.shape[1]), 0
    for train, test in splits:
        train, test = (x[np.isin(x, kept.numpy())] for x in (train, test))
        if len(train) and len(test):
            predicted = _predict(cues, rows, train, test)
            correct += (predicted == rows[test]).sum(0)
            tested += len(test)
    if not tested:
        return None
    accuracy, *baseline = (correct / tested).tolist()
    return ProbedAccuracy(
        accuracy, sum(baseline) / len(baseline), max(baseline)
    )


def scale_columns(cues: Tensor) -> Tensor:
    """Scale columns (N, D) to deviation 1, and omit constant ones."""
    cues = cues - cues.mean(0)
    deviation = cues.square().mean(0).sqrt()
    varied = deviation > 1e-9
    return cues[:, varied] / deviation[varied]


def _predict(
    cues: Tensor, rows: Tensor, train: np.ndarray, test: np.ndarray
) -> Tensor:
    """Predict the test photos for each label column (N, P)."""
    old, new = cues[train], cues[test]
    squared = torch.cdist(old, old).square()
    scale = squared[squared > 0].median() if squared.any() else 1.0
    kernel = (-2 * squared / scale).exp()
    penalty = PENALTY * torch.eye(len(old)).to(kernel)
    weights = (-2 * torch.cdist(new, old).square() / scale).exp()
    weights = weights @ torch.linalg.inv(kernel + penalty)
    targets = F.one_hot(rows[train], int(rows.max()) + 1).double()
    targets = targets - targets.mean(0)
    return torch.einsum('mn,npk->mpk', weights, targets).argmax(2)
