# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Image features and labels for a linear probe."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mmclca.errors import Error


@dataclass(frozen=True)
class LabeledFeatures:
    """Image features with their labels.

    A feature subset is a selection of the columns. The scores of classifiers
    on two subsets can be averaged, with a weight selected by
    cross-validation.

    Args:
        features (Tensor): (N, D), or (N, V, D) for V views per image: all
            views are used for training, the first one for the test.
        labels (Tensor | Sequence[int]): Labels (N,), from 0.
        num_classes (int): Number of classes K.
        groups (Sequence, optional): Group of each image (N,), such as the
            plant. Each group stays in one fold. Defaults to None: each image
            is a group.
        feature_subsets (Sequence[Tensor], optional): One or two lists of
            columns of the features. Defaults to None: all columns.
    """

    features: Tensor
    labels: Tensor | Sequence[int]
    num_classes: int
    groups: Sequence | None = None
    feature_subsets: Sequence[Tensor] | None = None


def check_labels(labels: Tensor, num_classes: int) -> None:
    """Refuse labels out of range, and classes without an image."""
    if not len(labels) or labels.min() < 0 or labels.max() >= num_classes:
        raise Error(
            f'{len(labels)} labels must be within 0 and {num_classes - 1}'
        )
    counts = labels.bincount(minlength=num_classes)
    empty = torch.where(counts == 0)[0].tolist()
    if empty:
        raise Error(
            f'{len(empty)} of {num_classes} classes have no images (the first '
            f'is number {empty[0]}); omit these classes'
        )


def span(features: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate some columns into the span of the images.

    Return features (N, M), and axes (D, M) with zeros in other columns.
    """
    rotated, axes = rotate(features[:, columns])
    basis = features.new_zeros(features.shape[1], rotated.shape[1])
    basis[columns] = (
        torch.eye(len(columns)).to(basis) if axes is None else axes
    )
    return rotated, basis


def rotate(features: Tensor) -> tuple[Tensor, Tensor | None]:
    """Rotate features into the span of the images.

    Returns features (N, min(N, D)) and the axes (D, N), or None as axes if
    there are at least as many images as dimensions.
    """
    if features.shape[1] <= len(features):
        return features, None
    basis, coordinates = torch.linalg.qr(features.T)
    return coordinates.T, basis
