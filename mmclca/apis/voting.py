# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Classes of images, by the votes of the nearest ones of a gallery."""

import torch
from torch import Tensor

from mmclca.datasets.grouped_splits import GroupedSplits
from mmclca.datasets.photographs import LabeledImages
from mmclca.models.retrievers import cosine_similarity, nearest_votes

ENTRIES = 2**20  # similarities at a time, whose ranking takes some 50 MB
# numbers of images that vote, of which folds choose, and their temperature
VOTERS = (10, 15, 20, 25, 30)
SIGMA = 0.05


def choose_voters(
    images: LabeledImages, features: Tensor, folds: int = 5
) -> tuple[int, float]:
    """Choose how many images vote by folds of a gallery.

    Touvron's thesis, section 2.5: 10, 15, 20, 25 or 30, with a temperature of
    0.05.

    Args:
        images (LabeledImages): Those of the gallery.
        features (Tensor): Their features (M, C).
        folds (int): Parts that it is cut into. Defaults to 5.

    Returns:
        tuple[int, float]: The number and the temperature.
    """
    right = dict.fromkeys(VOTERS, 0)
    named = [i for i, x in enumerate(images.labels) if x is not None]
    labels = torch.tensor([images.labels[i] for i in named])
    features, number = features[named], len(images.classes)
    for known, tested in GroupedSplits(labels).folds(folds, seed=0):
        for rows in torch.as_tensor(tested).split(1 + ENTRIES // len(known)):
            similar = cosine_similarity(features[rows], features[known])
            for k in VOTERS:
                votes = nearest_votes(similar, labels[known], number, k, SIGMA)
                right[k] += int((votes.argmax(dim=1) == labels[rows]).sum())
    return max(VOTERS, key=right.get), SIGMA


def vote(entries, similarity, labels, classes, k, temperature=0.07) -> None:
    """Add the class that the nearest images with a class vote for.

    Args:
        entries (Sequence[dict]): Of N queries, which get ``knn_class`` and
            ``knn_score``.
        similarity (Tensor): Their cosines with a gallery (N, M).
        labels (Tensor): Its classes (M,), -1 for none.
        classes (Sequence[str]): Their names; without any there is no vote.
        k (int): How many vote.
        temperature (float): Of their votes. Defaults to 0.07.
    """
    if not classes:
        return
    similarity = similarity.masked_fill(labels < 0, -torch.inf)
    how = labels.clamp(min=0), len(classes), k, temperature
    scores = nearest_votes(similarity, *how)
    for entry, row in zip(entries, scores, strict=True):
        if not row.isnan().any():  # as where nobody may vote
            entry['knn_class'] = classes[int(row.argmax())]
            entry['knn_score'] = float(row.max())
