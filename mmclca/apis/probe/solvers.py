# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Solvers of linear classifiers: ridge and logistic regression.

They take features (N, D) in float64, one-hot labels (N, K), image weights
(N, 1) and regularization strengths alpha. They return one
:class:`LinearClassifier` per alpha. It is relative to the scale of the
features, so the same values suit any backbone and any number of layers or
images.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.utils.extras import require


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
    require('sklearn', extra='fit')
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
