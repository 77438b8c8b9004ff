# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Linear classifiers of features, each with several strengths at once.

All take features (N, D) in float64, one-hot labels (N, K), the weights of the
images (N, 1) and strengths, and give a :class:`Linear` for each strength.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class Linear(NamedTuple):
    """Class scores by a linear layer.

    Args:
        weight (Tensor): (K, D).
        bias (Tensor): (K,).
    """

    weight: Tensor
    bias: Tensor

    def scores(self, features: Tensor) -> Tensor:
        """Scores (N, K) of features (N, D)."""
        return F.linear(features.to(self.weight), self.weight, self.bias)


def ridge(features, one_hot, weights, strengths) -> list[Linear]:
    mean, target = _mean(features, weights), _mean(one_hot, weights)
    root = weights.sqrt()
    centred = root * (features - mean)
    scale = centred.square().sum() / weights.sum()
    found = _solve(
        centred, centred.T @ (root * one_hot), [s * scale for s in strengths]
    )
    return [Linear(w, target - w @ mean) for w in found]


def lda(features, one_hot, weights, strengths) -> list[Linear]:
    of_class = (weights * one_hot).sum(0)
    means = (weights * one_hot).T @ features / of_class[:, None]
    within = weights.sqrt() * (features - one_hot @ means)
    scale = _mean_square(within)
    if scale == 0:  # an image a class
        scale = _mean_square(features - _mean(features, weights))
    ridges = [share / (1 - share) * scale for share in strengths]
    found = _solve(within, means.T, ridges)
    prior = (of_class / weights.sum()).log()
    fitted = []
    for share, weight in zip(strengths, found, strict=True):
        weight = weight * weights.sum() / (1 - share)
        fitted.append(Linear(weight, prior - (weight * means).sum(1) / 2))
    return fitted


def _mean_square(rows: Tensor) -> Tensor:
    return rows.square().sum() / rows.shape[1]


def _solve(rows: Tensor, right: Tensor, ridges) -> list[Tensor]:
    """(rows' rows + ridge)^-1 right, transposed, for each of some ridges."""
    values, vectors = torch.linalg.eigh(rows.T @ rows)
    values, right = values.clamp(min=0)[:, None], vectors.T @ right
    return [(vectors @ (right / (values + r))).T for r in ridges]


def logistic(features, one_hot, weights, strengths) -> list[Linear]:
    from sklearn.linear_model import LogisticRegression

    mean = _mean(features, weights)
    distances = (features - mean).square().sum(1, keepdim=True)
    scale = _mean(distances, weights).sqrt()
    scaled = ((features - mean) / scale).numpy()
    model = LogisticRegression(max_iter=1000, warm_start=True)
    fitted = []
    for strength in strengths:
        model.set_params(C=strength)
        model.fit(scaled, one_hot.argmax(1).numpy(), weights[:, 0].numpy())
        coef, bias = map(torch.from_numpy, (model.coef_, model.intercept_))
        if len(coef) == 1:  # two classes, as the logit of the second
            coef, bias = torch.cat([-coef, coef]) / 2, torch.cat([-bias, bias])
            bias = bias / 2
        coef = coef / scale
        fitted.append(Linear(coef, bias - coef @ mean))
    return fitted


def ncm(features, one_hot, weights, strengths) -> list[Linear]:
    means = one_hot.T @ features / one_hot.sum(0)[:, None]
    return [Linear(means, -means.square().sum(1) / 2) for _ in strengths]


def _mean(values: Tensor, weights: Tensor) -> Tensor:
    return (weights * values).sum(0) / weights.sum()
