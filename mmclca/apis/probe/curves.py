# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Learning curves of linear classifiers, and their extrapolation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from mmclca.evaluation.accuracy import accuracy, estimate_accuracy_interval

from .classifiers import ProbeData
from .folds import OutOfFold
from .subset_scores import SubsetScores

SIZES = (1, 2, 3, 5, 10, 20, 50, 100)  # images per class
MIN_ERROR = 0.001  # avoids the logarithm of zero
MIN_EXPONENT = -1  # twice the images at most halve the error


@dataclass(frozen=True)
class CurvePoint:
    """Point of a learning curve.

    Args:
        photos (int): Training images per class.
        accuracy (float): Mean accuracy over repeats.
        low (float): Lower bound of the 95% interval, see
            :func:`mmclca.evaluation.estimate_accuracy_interval`.
        high (float): Upper bound.
    """

    photos: int
    accuracy: float
    low: float
    high: float


def learning_curve(
    cross_validated: OutOfFold,
    sizes: Sequence[int] = SIZES,
    progress: Callable = iter,
) -> list[CurvePoint]:
    """Cross-validated accuracy by the number of training images per class.

    For each size, a random subset of the training images in each split is
    fitted with the setting of this split, and the same images are tested as
    in ``cross_validated``, whose accuracy is the last point. If the images
    have groups, groups are counted instead of images.

    Args:
        cross_validated (OutOfFold): Result of :func:`out_of_fold`.
        sizes (Sequence[int]): Images per class. If classes differ in size,
            images of the median class; the subset has the same share of each
            class, at least one image. Defaults to 1, 2, 3, 5, 10, 20, 50 and
            100.
        progress (Callable): Wrapper for the sizes. Defaults to ``iter``.

    Returns:
        list[CurvePoint]: A point per size. Empty if no image was tested.
    """
    data = ProbeData.from_features(
        cross_validated.data, cross_validated.classifier
    )
    if not cross_validated.independent:
        return []
    fit = SubsetScores(data)
    median = np.median(data.splitter.per_class)
    largest = max(round(median * (1 - 1 / cross_validated.folds)), 1)
    smaller = [size for size in sizes if size < largest]
    curve = {
        size: _subset_accuracy(cross_validated, size / median, fit)
        for size in progress(smaller)
    }
    curve[largest] = float(cross_validated.accuracy.mean())
    points = []
    for size, mean in curve.items():
        low, high = estimate_accuracy_interval(
            mean, cross_validated.independent
        )
        points.append(CurvePoint(size, mean, low, high))
    return points


def _subset_accuracy(
    cross_validated: OutOfFold, share: float, fit: SubsetScores
) -> float:
    """Cross-validate with a share of each class, at least one image."""
    data = fit.data
    numbers = np.rint(share * data.splitter.per_class).clip(1)
    logits = torch.full_like(cross_validated.logits, torch.nan)
    for i, (train, test) in enumerate(cross_validated.splits):
        drawn = train[data.split_part(train).draw(numbers, i)]
        (scores,) = fit.scores(drawn, test, [cross_validated.settings[i]])
        logits[i // cross_validated.folds, test] = scores.float()
    return float(accuracy(logits, data.labels).mean())


def forecast(points: Sequence[CurvePoint], factor: float) -> CurvePoint | None:
    """Extrapolate a learning curve from its last point.

    The error falls as a power of the image count, `Deep Learning Scaling is
    Predictable, Empirically <https://arxiv.org/abs/1712.00409>`_. A line
    through the logarithms of all points gives the exponent, limited to -1 to
    0. The lower bound stays, the upper bound rises by the gain.

    Args:
        points (Sequence[CurvePoint]): Result of :func:`learning_curve`.
        factor (float): Number of images relative to the last point.

    Returns:
        CurvePoint | None: Another point, None for fewer than two points.
    """
    if len(points) < 2:
        return None
    last = points[-1]
    x = np.log([point.photos for point in points])
    errors = 1 - np.array([point.accuracy for point in points])
    exponent, _ = np.polyfit(x, np.log(errors.clip(MIN_ERROR)), deg=1)
    mean, left = last.accuracy, factor ** exponent.clip(MIN_EXPONENT, 0)
    gain = float((1 - mean) * (1 - left))
    return replace(
        last,
        photos=round(factor * last.photos),
        accuracy=mean + gain,
        high=min(last.high + gain, 1.0),
    )
