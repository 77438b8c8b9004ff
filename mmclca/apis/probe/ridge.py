# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Ridge regression, by moments of the features or by inner products."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .solvers import MAX_CHUNK, LinearClassifier, weighted_mean

# the features of more rows stay in float32, to save memory
MAX_DOUBLE_ROWS = 5000
# and so do the inner products of more rows
MAX_DOUBLE_PRODUCTS = 10000


@dataclass(frozen=True)
class WeightedRows:
    """Rows of a regression.

    Args:
        features (Tensor): (N, D), float64; float32 for many rows.
        targets (Tensor): (N, K), float64.
        weights (Tensor): (N, 1), float64.
    """

    features: Tensor
    targets: Tensor
    weights: Tensor

    def center(self) -> 'WeightedRows':
        """Subtract the weighted mean of the features."""
        mean = weighted_mean(self.features, self.weights)
        return replace(self, features=self.features - mean.to(self.features))

    def center_columns(self, columns: Tensor) -> 'WeightedRows':
        """Select features, and subtract their weighted mean."""
        features = self.features[:, columns]
        features -= weighted_mean(features, self.weights).to(features)
        return replace(self, features=features)

    def select(self, positions: Tensor) -> 'WeightedRows':
        """Return the rows at some positions."""
        return WeightedRows(
            self.features[positions],
            self.targets[positions],
            self.weights[positions],
        )

    @property
    def is_wide(self) -> bool:
        """Whether the rows do not outnumber the features."""
        return len(self.features) <= self.features.shape[1]


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows; those of fewer rows follow by subtraction.

    Args:
        weight (Tensor): Total weight.
        features (Tensor): Summed features (D,).
        targets (Tensor): Summed targets (K,).
        squares (Tensor): Summed products of the features (D, D).
        products (Tensor): Summed products of features and targets (D, K).
    """

    weight: Tensor
    features: Tensor
    targets: Tensor
    squares: Tensor
    products: Tensor

    @classmethod
    def from_rows(cls, rows: WeightedRows) -> 'Moments':
        """Sum over rows."""
        number, width = rows.features.shape
        squares = rows.weights.new_zeros(width, width)
        products = rows.weights.new_zeros(width, rows.targets.shape[1])
        features = rows.weights.new_zeros(width)
        # float64 parts, as a copy of all rows takes much memory
        for positions in torch.arange(number).split(MAX_CHUNK):
            part = rows.select(positions)
            values = part.features.double()
            weighted = (part.weights * values).T
            features += weighted.sum(1)
            squares.addmm_(weighted, values)
            products.addmm_(weighted, part.targets)
        return cls(
            rows.weights.sum(),
            features,
            (rows.weights * rows.targets).sum(0),
            squares,
            products,
        )

    @property
    def scale(self) -> Tensor:
        """Mean squared distance of centered rows from their mean."""
        return mean_distance(self.squares.diagonal(), self.weight)

    def without(self, rows: WeightedRows) -> 'Moments':
        """Subtract the moments of some rows."""
        other = Moments.from_rows(rows)
        return Moments(
            self.weight - other.weight,
            self.features - other.features,
            self.targets - other.targets,
            torch.sub(self.squares, other.squares, out=other.squares),
            self.products - other.products,
        )

    def solve(self, penalty: Tensor) -> LinearClassifier:
        """Solve the normal equations of the centered rows."""
        mean = self.features / self.weight
        matrix = self.squares.clone()
        for part, sums in zip(
            matrix.split(MAX_CHUNK),
            self.features.split(MAX_CHUNK),
            strict=True,
        ):
            part -= sums[:, None] * mean
        matrix.diagonal().add_(penalty)
        products = self.products - mean[:, None] * self.targets
        root = torch.linalg.cholesky(matrix, out=matrix)
        weight = torch.cholesky_solve(products, root).T
        return LinearClassifier(
            weight, self.targets / self.weight - weight @ mean
        )


def mean_distance(squares: Tensor, weights: Tensor) -> Tensor:
    """Mean squared distance from the mean, from weighted squares (N,).

    It is above 0 for equal rows, too: they get the mean target.
    """
    smallest = torch.finfo(squares.dtype).tiny ** 0.5
    return (squares.sum() / weights.sum()).clamp(min=smallest)


def multiply_rows(features: Tensor) -> Tensor:
    """Return the inner products (N, N) of rows (N, D), float64 if not many."""
    number = len(features)
    if features.dtype == torch.float64 or number > MAX_DOUBLE_PRODUCTS:
        return features @ features.T
    products = features.new_zeros(number, number, dtype=torch.float64)
    for columns in features.split(MAX_CHUNK, dim=1):
        values = columns.double()
        products.addmm_(values, values.T)
    return products


def solve_dual(
    gram: Tensor,
    targets: Tensor,
    weights: Tensor,
    alpha: float,
    scale: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Ridge regression from the inner products (N, N) of its rows.

    For weights v that sum to 1, centered rows have the inner products
    G - G v 1^T - 1 v^T G + v^T G v.

    Args:
        gram (Tensor): Inner products (N, N).
        targets (Tensor): (N, K).
        weights (Tensor): (N, 1).
        alpha (float): Penalty relative to the scale.
        scale (Tensor, optional): Scale of the penalty. Defaults to None: the
            mean squared distance of the rows from their mean.

    Returns:
        tuple[Tensor, Tensor]: Coefficients (N, K), which sum to 0 over the
        rows, and intercept (K,): a row with the inner products g (N,) has the
        scores ``g @ coefficients + intercept``.
    """
    targets, weights = targets.to(gram), weights.to(gram)
    shares, roots = weights / weights.sum(), weights.sqrt()
    means = gram @ shares
    centered = gram - means
    centered -= means.T
    centered += shares.T @ means
    for part, root in zip(
        centered.split(MAX_CHUNK), roots.split(MAX_CHUNK), strict=True
    ):
        part *= root * roots.T
    if scale is None:
        scale = mean_distance(centered.diagonal(), weights)
    centered.diagonal().add_(alpha * scale)
    target = weighted_mean(targets, weights)
    root = torch.linalg.cholesky(centered, out=centered)
    solution = torch.cholesky_solve(roots * (targets - target), root)
    coefficients = roots * solution
    return coefficients, target - (means.T @ coefficients)[0]


def ridge(features, one_hot, weights, alphas) -> list[LinearClassifier]:
    """Fit ridge regression to one-hot labels; the bias is not penalized."""
    rows = WeightedRows(features, one_hot, weights).center()
    mean = weighted_mean(features, weights)
    if rows.is_wide:
        gram = multiply_rows(rows.features)
        solutions = [solve_dual(gram, one_hot, weights, x) for x in alphas]
        fitted = [
            LinearClassifier(
                (coefficients.T.to(rows.features) @ rows.features).double(),
                bias.double(),
            )
            for coefficients, bias in solutions
        ]
    else:
        moments = Moments.from_rows(rows)
        fitted = [moments.solve(alpha * moments.scale) for alpha in alphas]
    return [
        LinearClassifier(x.weight, x.bias - x.weight @ mean) for x in fitted
    ]
