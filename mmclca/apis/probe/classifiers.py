# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Linear classifiers on frozen features: ridge and logistic regression.

Solvers take features (N, D) in float64, one-hot labels (N, K), image weights
(N, 1) and regularization strengths alpha. They return one
:class:`LinearClassifier` per alpha. It is relative to the scale of the
features, so the same values suit any backbone and any number of layers or
images.

A feature subset is a selection of the columns. The scores of classifiers on
two subsets can be averaged, with a weight selected by cross-validation, as
alpha is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.datasets.grouped_splits import GroupedSplits
from mmclca.errors import Error
from mmclca.utils.messages import check_choice


class LinearClassifier(NamedTuple):
    """Linear layer for class scores: weight (K, D) and bias (K,)."""

    weight: Tensor
    bias: Tensor

    def scores(self, features: Tensor) -> Tensor:
        """Return class scores (N, K) of features (N, D)."""
        return F.linear(features.to(self.weight), self.weight, self.bias)


def ridge(features, one_hot, weights, alphas) -> list[LinearClassifier]:
    """Fit ridge regression to one-hot labels; the bias is not penalized."""
    mean, target = _mean(features, weights), _mean(one_hot, weights)
    root = weights.sqrt()
    centered = root * (features - mean)
    scale = centered.square().sum() / weights.sum()
    values, vectors = torch.linalg.eigh(centered.T @ centered)
    values = values.clamp(min=0)[:, None]
    right = vectors.T @ (centered.T @ (root * one_hot))
    fitted = []
    for alpha in alphas:
        weight = (vectors @ (right / (values + alpha * scale))).T
        fitted.append(LinearClassifier(weight, target - weight @ mean))
    return fitted


def logistic(features, one_hot, weights, alphas) -> list[LinearClassifier]:
    """Fit multinomial logistic regression with scikit-learn."""
    from sklearn.linear_model import LogisticRegression

    mean = _mean(features, weights)
    distances = (features - mean).square().sum(1, keepdim=True)
    scale = _mean(distances, weights).sqrt()
    scaled = ((features - mean) / scale).numpy()
    model = LogisticRegression(max_iter=1000, warm_start=True)
    fitted = []
    for alpha in alphas:
        model.set_params(C=alpha)
        model.fit(scaled, one_hot.argmax(1).numpy(), weights[:, 0].numpy())
        coef, bias = map(torch.from_numpy, (model.coef_, model.intercept_))
        if len(coef) == 1:  # two classes: the logit of the second class
            coef, bias = (torch.cat([-x, x]) / 2 for x in (coef, bias))
        coef = coef / scale
        fitted.append(LinearClassifier(coef, bias - coef @ mean))
    return fitted


def _mean(values: Tensor, weights: Tensor) -> Tensor:
    return (weights * values).sum(0) / weights.sum()


FITS = dict(ridge=ridge, logistic=logistic)
# candidate alphas, the default first
CLASSIFIERS = dict(
    ridge=(0.3, 0.03, 0.1, 1.0, 3.0),
    logistic=(100.0, 1.0, 10.0, 1000.0, 10000.0),
)
# candidates if there are two feature subsets
LATE_CLS_WEIGHTS = (0.25, 0.5, 0.75, 1.0)


class ProbeSetting(NamedTuple):
    """Regularization strength, and weight of the second feature subset.

    The second subset has the late CLS tokens.
    """

    alpha: float
    late_cls_weight: float = 0.0


def check_classifier(classifier: str) -> None:
    """Refuse a name that is not a key of ``CLASSIFIERS``."""
    check_choice(CLASSIFIERS, classifier=classifier)


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


@dataclass
class ProbeData:
    """Features (N, V, D) of V views per image, labels (N,) and settings.

    Classifiers are fitted to all views and tested on the first view. For
    each of the ``feature_subsets``, ``features`` has the coordinates in the
    span of all images, and ``basis`` the axes.
    """

    features: Tensor
    labels: Tensor
    num_classes: int
    classifier: str
    groups: np.ndarray | None = None
    class_weights: str | None = None
    feature_subsets: Sequence[Tensor] = ()
    basis: Tensor | None = None

    @classmethod
    def from_features(
        cls,
        features: Tensor,
        labels: Tensor | Sequence[int],
        num_classes: int,
        classifier: str,
        groups: Sequence | None = None,
        class_weights: str | None = None,
        feature_subsets: Sequence[Tensor] | None = None,
    ) -> 'ProbeData':
        """Check the arguments of :func:`mmclca.apis.probe.out_of_fold`."""
        labels = torch.as_tensor(labels)
        check_classifier(classifier)
        check_choice(('balanced',), class_weights=class_weights or 'balanced')
        check_labels(labels, num_classes)
        views = features if features.dim() == 3 else features[:, None]
        if len(views) != len(labels):
            raise Error(
                f'{len(views)} images have features, but {len(labels)} labels'
            )
        data = cls(
            views.double(),
            labels,
            num_classes,
            classifier,
            None if groups is None else np.asarray(groups),
            class_weights,
            feature_subsets or (),
        )
        return data.in_span()

    @property
    def settings(self) -> list[ProbeSetting]:
        """Return the candidates, the default first."""
        settings = [ProbeSetting(x) for x in CLASSIFIERS[self.classifier]]
        if len(self.feature_subsets) == 1:
            return settings
        return settings + [
            settings[0]._replace(late_cls_weight=x) for x in LATE_CLS_WEIGHTS
        ]

    @cached_property
    def splitter(self) -> GroupedSplits:
        """Return the stratified splits, which keep groups together."""
        return GroupedSplits(self.labels, self.groups)

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
        for columns in self.feature_subsets or [every]:
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

    def fit(self, settings: Sequence[ProbeSetting]) -> list[LinearClassifier]:
        """Fit the classifier to all images, once per setting."""
        views = self.features.shape[1]
        one_hot = F.one_hot(self.labels, self.num_classes).to(self.features)
        weights = torch.ones(len(self.labels))
        if self.class_weights == 'balanced':
            counts = self.labels.bincount(minlength=self.num_classes)
            expected = self.num_classes * counts[self.labels]
            weights = len(self.labels) / expected
        weights = weights.to(self.features)[:, None]
        features, solve = self.features.flatten(0, 1), FITS[self.classifier]
        # settings that differ only in late_cls_weight need no other fit
        alphas = [*dict.fromkeys(x.alpha for x in settings)]
        fitted: dict[float, list[LinearClassifier]] = {x: [] for x in alphas}
        for columns in self.feature_subsets:
            classifiers = solve(
                features[:, columns],
                one_hot.repeat_interleave(views, 0),
                weights.repeat_interleave(views, 0),
                alphas,
            )
            for alpha, classifier in zip(alphas, classifiers, strict=True):
                fitted[alpha].append(classifier)
        return [average(fitted[x.alpha], x.late_cls_weight) for x in settings]

    def scores(self, train: np.ndarray, test: np.ndarray) -> Tensor:
        """Fit on ``train`` with every setting; score ``test``, (S, n, K)."""
        fitted = self.part(train).fit(self.settings)
        tested = self.features[test, 0]
        return torch.stack([x.scores(tested) for x in fitted])

    def choose(self, folds: int, seed: int) -> int:
        """Select a setting by cross-validation, and return its position."""
        correct = torch.full((len(self.settings), len(self.labels)), torch.nan)
        for train, test in self.splitter.folds(folds, seed):
            predicted = self.scores(train, test).argmax(2)
            correct[:, test] = (predicted == self.labels[test]).float()
        return best_setting(correct)


def best_setting(correct: Tensor) -> int:
    """Return the position of a clearly better setting, else the first.

    Better means by more than one standard error of the difference, as in L.
    Breiman et al., Classification and Regression Trees (1984), section 3.4.3:
    with few images, the highest accuracy is mostly luck.

    ``correct`` (S, N) is 1 for a correct prediction, NaN if not tested.
    """
    correct = correct[:, ~correct[0].isnan()]
    if correct.shape[1] < 2:
        return 0
    gain = correct - correct[0]
    error = gain.std(1) / correct.shape[1] ** 0.5
    # a single gained image equals its standard error
    clear = torch.where(gain.mean(1) > error + 1e-6, gain.mean(1), 0)
    return int(clear.argmax())


def average(
    fitted: Sequence[LinearClassifier], late_cls_weight: float
) -> LinearClassifier:
    """Average the scores of one or two classifiers on adjacent features.

    The second one has the weight ``late_cls_weight``.
    """
    shares = [1 - late_cls_weight, late_cls_weight][: len(fitted)]
    pairs = [*zip(shares, fitted, strict=True)]
    weight = torch.cat([share * x.weight for share, x in pairs], 1)
    biases = [share * x.bias for share, x in pairs]
    return LinearClassifier(weight, sum(biases, weight.new_zeros(())))


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


def fit_linear(
    features: Tensor,
    labels: Tensor | Sequence[int],
    num_classes: int,
    classifier: str = 'ridge',
    alpha: float | None = None,
    class_weights: str | None = None,
    feature_subsets: Sequence[Tensor] | None = None,
    late_cls_weight: float = 0.0,
) -> LinearClassifier:
    """Fit a linear classifier.

    - 'ridge': ridge regression to one-hot labels, without a penalty on the
      bias. ``alpha`` is relative to the mean squared distance of the
      images from their mean.
    - 'logistic': multinomial logistic regression. ``alpha`` is
      scikit-learn's C for features with mean squared distance 1 from their
      mean.

    Args:
        features (Tensor): (N, D), or (N, V, D) for V views per image.
        labels (Tensor | Sequence[int]): Labels (N,), from 0.
        num_classes (int): Number of classes K.
        classifier (str): A key of ``CLASSIFIERS``. Defaults to 'ridge'.
        alpha (float, optional): Regularization strength: larger values
            regularize more with 'ridge', less with 'logistic'. Defaults to
            None: the first value of ``CLASSIFIERS``.
        class_weights (str, optional): 'balanced' to weight classes equally.
            Defaults to None: images are weighted equally.
        feature_subsets (Sequence[Tensor], optional): One or two lists of
            columns of the features. Defaults to None: all columns.
        late_cls_weight (float): Weight of the scores of the second feature
            subset. Defaults to 0.0.

    Returns:
        LinearClassifier: The classifier.

    Raises:
        Error: If the classifier is unknown, or a class is empty.
    """
    data = ProbeData.from_features(
        features,
        labels,
        num_classes,
        classifier,
        None,
        class_weights,
        feature_subsets,
    )
    alpha = data.settings[0].alpha if alpha is None else alpha
    (fitted,) = data.fit([ProbeSetting(alpha, late_cls_weight)])
    weight = fitted.weight
    weight = weight if data.basis is None else weight @ data.basis.T
    return LinearClassifier(weight.float(), fitted.bias.float())
