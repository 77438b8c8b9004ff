# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Linear classifiers on frozen features, fitted with several settings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.datasets.grouped_splits import GroupedSplits
from mmclca.errors import Error

from .data import LabeledFeatures, check_labels, span
from .ridge import MAX_DOUBLE_ROWS, WeightedRows, ridge
from .settings import (
    CLASSIFIERS,
    LATE_CLS_WEIGHTS,
    RIDGE,
    ClassifierSettings,
    ProbeSetting,
)
from .solvers import LinearClassifier, logistic

FITS = dict(ridge=ridge, logistic=logistic)


@dataclass
class ProbeData:
    """Features (N, V, D) of V views per image, labels (N,) and settings.

    Classifiers are fitted to all views and tested on the first view. If the
    features are rotated, ``features`` has the coordinates in the span of all
    images for each of the ``feature_subsets``, and ``basis`` the axes.
    Features are in float64, or in float32 for ridge regression with many rows.
    """

    features: Tensor
    labels: Tensor
    num_classes: int
    classifier: ClassifierSettings
    groups: np.ndarray | None = None
    feature_subsets: Sequence[Tensor] = ()
    basis: Tensor | None = None

    @classmethod
    def from_features(
        cls, data: LabeledFeatures, classifier: ClassifierSettings
    ) -> 'ProbeData':
        """Check labels and numbers of images.

        For logistic regression, rotate the features: it takes many passes.
        """
        labels = torch.as_tensor(data.labels)
        check_labels(labels, data.num_classes)
        views = data.features
        views = views if views.dim() == 3 else views[:, None]
        if len(views) != len(labels):
            raise Error(
                f'{len(views)} images have features, but {len(labels)} labels'
            )
        is_ridge = classifier.name == 'ridge'
        is_double = not is_ridge or views.dtype == torch.float64
        if is_double or views.shape[:2].numel() <= MAX_DOUBLE_ROWS:
            views = views.double()
        checked = cls(
            views if views.dtype == torch.float64 else views.float(),
            labels,
            data.num_classes,
            classifier,
            None if data.groups is None else np.asarray(data.groups),
            data.feature_subsets or [torch.arange(views.shape[2])],
        )
        return checked if is_ridge else checked.in_span()

    @property
    def settings(self) -> list[ProbeSetting]:
        """Return the candidates, the default first."""
        alphas = CLASSIFIERS[self.classifier.name]
        if len(self.feature_subsets) == 1:
            return [*map(ProbeSetting, alphas.single)]
        return [
            *map(ProbeSetting, alphas.first),
            *(ProbeSetting(alphas.first[0], x) for x in LATE_CLS_WEIGHTS),
        ]

    def get_alpha(self, subset: int, setting: ProbeSetting) -> float:
        """Return the regularization strength for a feature subset."""
        second = CLASSIFIERS[self.classifier.name].second
        return second if subset else setting.alpha

    @cached_property
    def splitter(self) -> GroupedSplits:
        """Return the stratified splits, which keep groups together."""
        return GroupedSplits(self.labels, self.groups)

    def split_part(self, images: np.ndarray) -> GroupedSplits:
        """Return the splits of images at some positions."""
        groups = None if self.groups is None else self.groups[images]
        return GroupedSplits(self.labels[images], groups)

    def part(self, chosen: np.ndarray) -> 'ProbeData':
        """Return the data of the selected images."""
        groups = None if self.groups is None else self.groups[chosen]
        return replace(
            self,
            features=self.features[chosen],
            labels=self.labels[chosen],
            groups=groups,
        )

    def in_span(self) -> 'ProbeData':
        """Rotate each feature subset into the span of all images.

        With at least as many images as dimensions, all features are one
        subset and keep their axes.
        """
        flat = self.features.flatten(0, 1)
        every = torch.arange(flat.shape[1])
        if len(flat) >= len(every):
            return replace(self, feature_subsets=[every])
        rotated, bases = [], []
        for columns in self.feature_subsets:
            coordinates, axes = span(flat, columns)
            rotated.append(coordinates)
            bases.append(axes)
        widths = [coordinates.shape[1] for coordinates in rotated]
        features = torch.cat(rotated, 1)
        return replace(
            self,
            features=features.unflatten(0, self.features.shape[:2]),
            feature_subsets=torch.arange(sum(widths)).split(widths),
            basis=torch.cat(bases, 1),
        )

    @cached_property
    def rows(self) -> WeightedRows:
        """All views of all images as rows in a regression."""
        views = self.features.shape[1]
        one_hot = F.one_hot(self.labels, self.num_classes).double()
        weights = weigh_images(self.labels, self.classifier)
        return WeightedRows(
            self.features.flatten(0, 1),
            one_hot.repeat_interleave(views, 0),
            weights.repeat_interleave(views, 0),
        )

    def find_rows(self, images: np.ndarray) -> Tensor:
        """Return the positions of all views in the rows."""
        views = torch.arange(self.features.shape[1])
        first = len(views) * torch.as_tensor(images)
        return (first[:, None] + views).flatten()

    def fit(self, settings: Sequence[ProbeSetting]) -> list[LinearClassifier]:
        """Fit the classifier to all images, once per setting."""
        rows, solve = self.rows, FITS[self.classifier.name]
        width = self.features.shape[2]
        weights = torch.zeros(
            len(settings), self.num_classes, width, dtype=torch.float64
        )
        biases = weights.new_zeros(len(settings), self.num_classes)
        for subset, columns in enumerate(self.feature_subsets):
            shares = [x.subset_weights[subset] for x in settings]
            used = [self.get_alpha(subset, x) for x in settings]
            # settings that differ only in late_cls_weight need no other fit
            alphas = [
                *dict.fromkeys(
                    alpha
                    for alpha, share in zip(used, shares, strict=True)
                    if share
                )
            ]
            features = rows.features[:, columns]
            fitted = solve(features, rows.targets, rows.weights, alphas)
            by_alpha = dict(zip(alphas, fitted, strict=True))
            for i, share in enumerate(shares):
                if share:
                    part = by_alpha[used[i]]
                    weights[i][:, columns] += share * part.weight
                    biases[i] += share * part.bias
        return [*map(LinearClassifier, weights, biases)]


def weigh_images(labels: Tensor, classifier: ClassifierSettings) -> Tensor:
    """Return the weights (N, 1) of images, which average 1."""
    if classifier.class_weights is None:
        return torch.ones(len(labels), 1, dtype=torch.float64)
    counts = labels.bincount()
    weights = len(labels) / ((counts > 0).sum() * counts[labels])
    return weights.double()[:, None]


def fit_linear(
    data: LabeledFeatures,
    classifier: ClassifierSettings = RIDGE,
    setting: ProbeSetting | None = None,
) -> LinearClassifier:
    """Fit a linear classifier.

    - 'ridge': ridge regression to one-hot labels, without a penalty on the
      bias. ``alpha`` is relative to the mean squared distance of the
      images from their mean.
    - 'logistic': multinomial logistic regression. ``alpha`` is
      scikit-learn's C for features with mean squared distance 1 from their
      mean.

    Args:
        data (LabeledFeatures): Features, labels and feature subsets.
        classifier (ClassifierSettings): Classifier and class weights.
            Defaults to ridge regression with equal image weights.
        setting (ProbeSetting, optional): Regularization strength, and weight
            of the second feature subset. Defaults to None: the first value of
            ``CLASSIFIERS``, and no weight.

    Returns:
        LinearClassifier: The classifier.

    Raises:
        Error: If a class is empty, a label is out of range, or features
            and labels differ in number.
    """
    checked = ProbeData.from_features(data, classifier)
    (fitted,) = checked.fit([setting or checked.settings[0]])
    weight = fitted.weight
    weight = weight if checked.basis is None else weight @ checked.basis.T
    return LinearClassifier(weight.float(), fitted.bias.float())
