# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Classifiers that are fitted to features in closed form, or nearly.

Strengths are without a scale: the same ones do for any backbone, any number
of layers and any number of images.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.utils.known_names import not_one_of

from .solvers import Linear, lda, logistic, ncm, ridge

# the one in the middle is the default
CLASSIFIERS = dict(
    ridge=(0.03, 0.1, 0.3, 1.0, 3.0),
    lda=(0.1, 0.3, 0.5, 0.7, 0.9),
    logistic=(1.0, 10.0, 100.0, 1000.0, 10000.0),
    ncm=(1.0,),
)


FITS = dict(ridge=ridge, lda=lda, logistic=logistic, ncm=ncm)


def default_strength(classifier: str) -> float:
    """The strength of a classifier where the images are too few to choose.

    Args:
        classifier (str): A key of ``CLASSIFIERS``.

    Raises:
        ValueError: If there is no such classifier.
    """
    check_classifier(classifier)
    strengths = CLASSIFIERS[classifier]
    return strengths[len(strengths) // 2]


def check_classifier(classifier: str) -> None:
    """Refuse a name that is no key of ``CLASSIFIERS``."""
    if classifier not in CLASSIFIERS:
        raise ValueError(f'classifier: {not_one_of(classifier, CLASSIFIERS)}')


def check_labels(labels: Tensor, num_classes: int) -> None:
    """Refuse labels out of range, and classes without an image."""
    if not len(labels) or labels.min() < 0 or labels.max() >= num_classes:
        raise ValueError(
            f'labels of {len(labels)} images must be 0 to {num_classes - 1}'
        )
    counts = labels.bincount(minlength=num_classes)
    empty = torch.where(counts == 0)[0].tolist()
    if empty:
        raise ValueError(
            f'{len(empty)} of {num_classes} classes have no image (the first '
            f'is number {empty[0]}): leave them out'
        )


def fit_linear(
    features: Tensor,
    labels: Tensor | Sequence[int],
    num_classes: int,
    classifier: str = 'ridge',
    strength: float | None = None,
    weights: Tensor | None = None,
) -> Linear:
    """Fit a classifier.

    - 'ridge': ridge regression to one-hot labels, the intercept free. Its
      strength is relative to the mean squared distance of the images from
      their mean.
    - 'lda': linear discriminant analysis, the covariance within the classes
      shrunk towards a multiple of the identity by a share.
    - 'logistic': multinomial logistic regression; the strength is the C of
      scikit-learn where the mean squared distance from the mean is 1.
    - 'ncm': the nearest class mean, in Euclidean distance.

    Args:
        features (Tensor): (N, D).
        labels (Tensor | Sequence[int]): Their classes (N,), from 0.
        num_classes (int): Number of classes K.
        classifier (str): A key of ``CLASSIFIERS``. Defaults to 'ridge'.
        strength (float, optional): How much it is regularized, more for
            larger ones but with 'logistic'. Defaults to None: see
            :func:`default_strength`.
        weights (Tensor, optional): How much each image counts (N,), of mean
            1. Nothing to 'ncm'. Defaults to None: all alike.

    Returns:
        Linear: What has ``scores(features)``.

    Raises:
        ValueError: If there is no such classifier, or a class has no image.
    """
    labels = torch.as_tensor(labels)
    check_labels(labels, num_classes)
    if strength is None:
        strength = default_strength(classifier)
    rotated, basis = rotate(features.double())
    (fitted,) = fit_path(
        rotated, labels, num_classes, classifier, (strength,), weights
    )
    weight = fitted.weight if basis is None else fitted.weight @ basis.T
    return Linear(weight.float(), fitted.bias.float())


def rotate(features: Tensor) -> tuple[Tensor, Tensor | None]:
    """Features in the span of the images, which loses nothing.

    Args:
        features (Tensor): (N, D).

    Returns:
        tuple[Tensor, Tensor | None]: (N, min(N, D)), and its axes (D, N) or
        None where nothing is gained.
    """
    if features.shape[1] <= len(features):
        return features, None
    basis, coordinates = torch.linalg.qr(features.T)
    return coordinates.T, basis


def fit_path(
    features: Tensor,
    labels: Tensor,
    num_classes: int,
    classifier: str,
    strengths: Sequence[float],
    weights: Tensor | None = None,
) -> list[Linear]:
    """Fit a classifier with each of some strengths, at the cost of one.

    Args:
        features (Tensor): (N, D), float64; see :func:`rotate`.
        labels (Tensor): See :func:`fit_linear`, as all that follow.
        num_classes (int): See there.
        classifier (str): See there.
        strengths (Sequence[float]): Strengths.
        weights (Tensor, optional): See there.
    """
    check_classifier(classifier)
    if weights is None:
        weights = torch.ones(len(labels))
    one_hot = F.one_hot(labels, num_classes).to(features)
    weights = weights.to(features)[:, None]
    return FITS[classifier](features, one_hot, weights, strengths)
