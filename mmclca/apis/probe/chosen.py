# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from torch import Tensor

from .classifiers import fit_linear
from .folds import OutOfFold, out_of_fold
from .solvers import Linear
from .task import weights_of


def fit_chosen(
    features: Tensor,
    labels: Tensor,
    num_classes: int,
    classifier: str,
    *,
    class_weights: str | None = None,
    **folds,
) -> tuple[OutOfFold, Linear]:
    """Fit a classifier with the strength that folds of the images choose.

    Args:
        features (Tensor): (N, D).
        labels (Tensor): Classes of the images (N,), from 0.
        num_classes (int): Number of classes.
        classifier (str): See :func:`out_of_fold`, as all that follow.
        class_weights (str, optional): See there. Defaults to None.
        **folds: ``groups``, ``folds``, ``repeats``, ``progress``.

    Returns:
        tuple[OutOfFold, Linear]: What the folds tell, its
        temperature among it, and the classifier of all images, whose scores
        are not yet divided by that.

    Raises:
        ValueError: See :func:`out_of_fold`.
    """
    settings = features, labels, num_classes, classifier
    found = out_of_fold(*settings, class_weights=class_weights, **folds)
    weights = weights_of(labels, num_classes, class_weights)
    return found, fit_linear(*settings, found.strength, weights)
