# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Test whether new photos differ from the training photos of a model.

The test compares two scores: the similarity to the nearest training photo,
and the ratio of the two largest class probabilities. Training photos have
scores as if they were new: similarities to photos of other groups, and
cross-validated probabilities. It is a rank test, stratified by the predicted
class (P. van Elteren, On the combination of independent two sample tests of
Wilcoxon, 1960), so that other shares of the classes are not a difference. It
is one-sided: only less similar or less certain photos count.
"""

from dataclasses import dataclass, replace
from statistics import NormalDist

import torch
from torch import Tensor

# weight of the ranks of probability ratios; those of similarities have 1
RATIO_WEIGHT = 0.5
# two training photos that are nearest to each other share their similarity
PHOTOS_PER_SIMILARITY = 2


@dataclass(frozen=True)
class ScoredPhotos:
    """Scores of photos by a model that has not seen them.

    Args:
        probabilities (Tensor): Class probabilities (N, K), NaN for classes
            that cannot occur.
        similarities (Tensor): Cosine similarity to the nearest photo (N,).
    """

    probabilities: Tensor
    similarities: Tensor

    def select(self, photos: Tensor) -> 'ScoredPhotos':
        """Select photos by positions, or by a mask (N,)."""
        return replace(
            self,
            probabilities=self.probabilities[photos],
            similarities=self.similarities[photos],
        )

    def join(self, other: 'ScoredPhotos') -> 'ScoredPhotos':
        """Append the scores of other photos."""
        return ScoredPhotos(
            torch.cat([self.probabilities, other.probabilities]),
            torch.cat([self.similarities, other.similarities]),
        )


def estimate_shift_p_value(training: ScoredPhotos, new: ScoredPhotos) -> float:
    """Return the p-value of the hypothesis that new photos are not farther.

    Classes predicted for no new or no training photo are not compared. If
    none remains, the p-value is 1.

    Args:
        training (ScoredPhotos): Training photos.
        new (ScoredPhotos): New photos.
    """
    scores = training.join(new)
    is_new = torch.arange(len(scores.similarities)) >= len(
        training.similarities
    )
    probabilities = scores.probabilities.double().nan_to_num(0)
    first, second = probabilities.topk(2).values.clamp(min=1e-30).unbind(1)
    ranks = compute_ranks(scores.similarities)
    ranks = ranks + RATIO_WEIGHT * compute_ranks(first / second)
    predicted = probabilities.argmax(1)
    total = variance = 0.0
    for label in predicted[is_new].unique():
        new_ranks = ranks[is_new & (predicted == label)]
        old_ranks = ranks[~is_new & (predicted == label)]
        n, m = len(new_ranks), len(old_ranks)
        if not m or n + m < 3:
            continue
        weight = n * m / (n + m)
        total += weight * float(new_ranks.mean() - old_ranks.mean())
        spread = float(torch.cat([new_ranks, old_ranks]).var())
        variance += weight**2 * spread * (1 / n + PHOTOS_PER_SIMILARITY / m)
    return NormalDist().cdf(total / variance**0.5) if variance else 1.0


def compute_ranks(values: Tensor) -> Tensor:
    """Return the ranks of values (N,) from 0, equal values have their mean."""
    ordered = values.sort().values
    lower = torch.searchsorted(ordered, values)
    not_higher = torch.searchsorted(ordered, values, right=True)
    return (lower + not_higher - 1).double() / 2
