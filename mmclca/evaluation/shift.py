# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Test whether new photos differ from the training photos of a model.

The test compares two scores of each photo: the distance to the nearest
training photo, and the ratio between the distances to the nearest photos in
two classes (P. R. Mendes Júnior et al., Nearest neighbors distance ratio
open-set classifier, Machine Learning 106, 2017). Photos are compared within
each predicted class, so that other shares of the classes are not a
difference. The t test with unequal variances (B. L. Welch, The generalization
of 'Student's' problem when several different population variances are
involved, 1947) is one-sided: only more distant or less distinct photos count.

A training photo is compared with the photos of other groups. A new photo is
compared with equally many: its scores are means over comparisons that omit
one group of the predicted class.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import torch
from torch import Tensor

# weights of the distance and of the ratio, in standard deviations
WEIGHTS = (1.0, 2.0)
# training photos that share neighbors depend on each other
PHOTOS_PER_SCORE = 2.5
# new photos with the variance of training photos, added to the actual ones
PRIOR_PHOTOS = 5
MAX_OMITTED = 10  # photos of a class that are omitted in turn
SMALLEST_DISTANCE = 1e-4  # bounds logarithms for copies


@dataclass(frozen=True)
class References:
    """Training photos with which photos are compared.

    Args:
        labels (Tensor): Labels (T,).
        groups (Tensor): Group numbers (T,), such as plants.
    """

    labels: Tensor
    groups: Tensor

    def score_training(self, similarities: Tensor) -> Tensor:
        """Score the references among themselves, by those of other groups.

        Args:
            similarities (Tensor): Cosine similarities (T, T).

        Returns:
            Tensor: Scores (T, 2), see :meth:`score`.
        """
        is_same = self.groups[:, None] == self.groups
        return self.score(similarities.masked_fill(is_same, -1))

    def score_new(self, similarities: Tensor, predicted: Tensor) -> Tensor:
        """Score new photos, by as many references as for training photos.

        Args:
            similarities (Tensor): Cosine similarities (N, T).
            predicted (Tensor): Predicted labels (N,).

        Returns:
            Tensor: Scores (N, 2), means over the omitted groups.
        """
        scores = similarities.new_zeros(len(predicted), 2)
        for label in predicted.unique():
            rows = predicted == label
            groups = self.groups[self.labels == label]
            groups = groups[:: math.ceil(len(groups) / MAX_OMITTED) or 1]
            omitted = [self.groups == group for group in groups]
            compared = [
                self.score(similarities[rows].masked_fill(is_omitted, -1))
                for is_omitted in omitted
            ]
            if compared:
                scores[rows] = torch.stack(compared).mean(0)
        return scores

    def score(self, similarities: Tensor) -> Tensor:
        """Score photos: logarithms, inverse distance and ratio.

        The ratio divides the distances to the nearest references in the
        second and in the first class. A distance is 1 minus the similarity.

        Args:
            similarities (Tensor): Cosine similarities (N, T).

        Returns:
            Tensor: Scores (N, 2), high for photos like the references.
        """
        labels = self.labels.expand_as(similarities)
        # at least two classes, without a photo at a distance of 2
        shape = len(similarities), int(self.labels.max()) + 2
        nearest = similarities.new_full(shape, -1)
        nearest = nearest.scatter_reduce(1, labels, similarities, 'amax')
        best = nearest.topk(2).values
        logarithms = (1 - best).clamp(min=SMALLEST_DISTANCE).log()
        first, second = logarithms.unbind(1)
        return torch.stack([-first, second - first], dim=1)


@dataclass(frozen=True)
class ScoredPhotos:
    """Photos with scores by a model that has not seen them.

    Args:
        predicted (Tensor): Predicted labels (N,).
        scores (Tensor): Scores (N, S), high for photos like the training
            photos.
    """

    predicted: Tensor
    scores: Tensor

    def combine(self, weights: Tensor) -> 'ScoredPhotos':
        """Replace the scores by their weighted sum (N, 1)."""
        scores = self.scores.double() @ weights.double()
        return ScoredPhotos(self.predicted, scores[:, None])

    def select(self, photos: Tensor) -> 'ScoredPhotos':
        """Select photos by a mask (N,)."""
        return ScoredPhotos(self.predicted[photos], self.scores[photos])

    @property
    def squares(self) -> Tensor:
        """Squared deviations from class means, their sums (S,)."""
        squares = []
        for label in self.predicted.unique():
            scores = self.scores[self.predicted == label].double()
            squares.append((scores - scores.mean(0)).square().sum(0))
        return torch.stack(squares).sum(0)

    @property
    def degrees(self) -> int:
        """Degrees of freedom of the squares."""
        return len(self.predicted) - len(self.predicted.unique())


@dataclass(frozen=True)
class ClassDifference:
    """Difference between the photos with the same predicted class.

    Args:
        training (int): Number of training photos.
        new (int): Number of new photos.
        difference (float): Mean score of new minus that of training photos.
    """

    training: int
    new: int
    difference: float

    @property
    def weight(self) -> float:
        """Weight that minimizes the variance of the mean difference."""
        return self.training * self.new / (self.training + self.new)


def estimate_shift_p_value(training: ScoredPhotos, new: ScoredPhotos) -> float:
    """Test the hypothesis that new photos do not differ.

    Classes predicted for no new or no training photo are not compared. The
    p-value is 1 if none remains, or if a score does not vary in any class.

    Args:
        training (ScoredPhotos): Training photos.
        new (ScoredPhotos): New photos.

    Returns:
        float: The p-value.
    """
    is_common = torch.isin(new.predicted, training.predicted)
    if not is_common.any() or not (training.squares > 0).all():
        return 1.0
    deviations = (training.squares / training.degrees).sqrt()
    weights = torch.tensor(WEIGHTS) / deviations
    training = training.combine(weights)
    new = new.select(is_common).combine(weights)
    old_variance = training.squares.item() / training.degrees
    new_variance = new.squares.item() + PRIOR_PHOTOS * old_variance
    new_variance /= new.degrees + PRIOR_PHOTOS
    classes = compare_classes(training, new)
    total = sum(x.weight * x.difference for x in classes)
    per_training = sum(x.weight**2 / x.training for x in classes)
    per_new = sum(x.weight**2 / x.new for x in classes)
    variance = PHOTOS_PER_SCORE * old_variance * per_training
    variance += new_variance * per_new
    effective = sum(x.weight for x in classes) ** 2 / per_training
    return approximate_t_cdf(total / variance**0.5, max(1, effective - 1))


def compare_classes(
    training: ScoredPhotos, new: ScoredPhotos
) -> list[ClassDifference]:
    """Compare the scores (N, 1) of photos with the same predicted class."""
    differences = []
    for label in new.predicted.unique():
        old_scores = training.scores[training.predicted == label]
        new_scores = new.scores[new.predicted == label]
        difference = float(new_scores.mean() - old_scores.mean())
        differences.append(
            ClassDifference(len(old_scores), len(new_scores), difference)
        )
    return differences


def approximate_t_cdf(value: float, degrees: float) -> float:
    """Approximate the distribution function of Student's t.

    D. L. Wallace, Bounds on normal approximations to Student's and the
    chi-square distributions (1959). The error near 5% is below 0.2 points
    with at least two degrees.
    """
    normal = math.sqrt(degrees * math.log1p(value**2 / degrees))
    normal *= (8 * degrees + 1) / (8 * degrees + 3)
    return NormalDist().cdf(math.copysign(normal, value))
