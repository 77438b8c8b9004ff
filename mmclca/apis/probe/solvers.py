# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Linear classifiers, and logistic regression.

Solvers take features (N, D) in float64, one-hot labels (N, K), image weights
(N, 1) and regularization strengths alpha. They return one
:class:`LinearClassifier` per alpha. It is relative to the scale of the
features, so the same values suit any backbone and any number of layers or
images.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.utils.extras import require

# rows or columns that are copied at once, to save memory
MAX_CHUNK = 4096


class LinearClassifier(NamedTuple):
    """Linear layer for class scores: weight (K, D) and bias (K,)."""

    weight: Tensor
    bias: Tensor

    def scores(self, features: Tensor) -> Tensor:
        """Return class scores (N, K) of features (N, D)."""
        return F.linear(features.to(self.weight), self.weight, self.bias)


def logistic(features, one_hot, weights, alphas) -> list[LinearClassifier]:
    """Fit multinomial logistic regression with scikit-learn."""
    require('sklearn', extra='fit')
    from sklearn.linear_model import LogisticRegression

    mean = weighted_mean(features, weights)
    distances = (features - mean).square().sum(1, keepdim=True)
    scale = weighted_mean(distances, weights).sqrt()
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


def weighted_mean(values: Tensor, weights: Tensor) -> Tensor:
    """Mean (D,) of rows (N, D) with weights (N, 1)."""
    parts = zip(values.split(MAX_CHUNK), weights.split(MAX_CHUNK), strict=True)
    sums = [(weight * value).sum(0) for value, weight in parts]
    return torch.stack(sums).sum(0) / weights.sum()
