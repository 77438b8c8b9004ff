# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Ridge regression, and its scores for rows that are left out.

Rows x_i have weights w_i and targets y_i; s_i is the root of w_i. With the
rows X centered at their weighted mean, G = (sX)(sX)^T and u = s / |s|, the
penalty p gives the fitted values H sY with

    H = u u^T + G (G + p I)^-1,

since the intercept is not penalized (T. Hastie et al., The Elements of
Statistical Learning (2009), sections 3.4.1 and 7.10). As G u = 0, the
residual matrix is

    R = I - H = p (G + p I)^-1 - u u^T.

Scores of the rows b, by the regression on all other rows with the same
weights and penalty, follow from R alone (R. Cook and S. Weisberg, Residuals
and Influence in Regression (1982), section 3.6, for blocks):

    s_b scores_b = s_b y_b - R_bb^-1 (R sY)_b.

Without rows a, the residual matrix of the other rows is their Schur
complement R - R_.a R_aa^-1 R_a., so rows can be left out in turn. One inverse
replaces the fits of all folds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from .solvers import LinearClassifier, weighted_mean

# residual matrices of more rows are in float32, to take less than 2 GB
MAX_DOUBLE_ROWS = 5000
# with more rows, moments are subtracted, unless features outnumber the rows
MAX_RESIDUAL_ROWS, MAX_ROWS_PER_FEATURE = 10000, 3


@dataclass(frozen=True)
class WeightedRows:
    """Rows of a regression.

    Args:
        features (Tensor): (N, D), float64.
        targets (Tensor): (N, K), float64.
        weights (Tensor): (N, 1), float64.
    """

    features: Tensor
    targets: Tensor
    weights: Tensor

    def center(self) -> 'WeightedRows':
        """Subtract the weighted mean of the features."""
        mean = weighted_mean(self.features, self.weights)
        return replace(self, features=self.features - mean)

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


class LeaveOut(Protocol):
    """Ridge regressions with several penalties on the same rows.

    The penalty is alpha times the mean squared distance of all rows from
    their mean, also after rows were left out.
    """

    def without(self, rows: Tensor) -> 'LeaveOut':
        """Leave out rows for good."""
        ...

    def scores(self, rows: Tensor) -> Tensor:
        """Score rows (A, B, K) by regressions on the others per alpha."""
        ...


def leave_out(rows: WeightedRows, alphas: Sequence[float]) -> LeaveOut:
    """Fit ridge regressions from which rows can be left out."""
    rows = rows.center()
    number, width = rows.features.shape
    many = min(MAX_ROWS_PER_FEATURE * width, MAX_RESIDUAL_ROWS)
    if number <= max(many, width):
        return ResidualMatrices.from_centered(rows, alphas)
    return RowMoments.from_centered(rows, alphas)


@dataclass(frozen=True)
class ResidualMatrices:
    """Residual matrices R = I - H, one per penalty.

    Left-out rows are not removed: ``factors`` (A, B, N) and
    ``factor_residuals`` (A, B, K) have the part of their Schur complement, so
    that the other rows have the matrix R - factors^T factors and the
    residuals R sY - factors^T factor_residuals.

    Args:
        roots (Tensor): Roots s of the weights (N, 1).
        targets (Tensor): sY (N, K).
        matrices (Tensor): R (A, N, N).
        residuals (Tensor): R sY (A, N, K).
        factors (Tensor): See above, B = 0 at first.
        factor_residuals (Tensor): See above.
    """

    roots: Tensor
    targets: Tensor
    matrices: Tensor
    residuals: Tensor
    factors: Tensor
    factor_residuals: Tensor

    @classmethod
    def from_centered(
        cls, rows: WeightedRows, alphas: Sequence[float]
    ) -> 'ResidualMatrices':
        """Invert G + p I for each penalty.

        A Cholesky factor per penalty is faster than one eigendecomposition.
        """
        number = len(rows.features)
        if number > MAX_DOUBLE_ROWS:
            rows = WeightedRows(
                rows.features.float(),
                rows.targets.float(),
                rows.weights.float(),
            )
        roots = rows.weights.sqrt()
        unit = roots / roots.norm()
        scaled = roots * rows.features
        gram = scaled @ scaled.T
        matrices = gram.new_empty(len(alphas), number, number)
        for alpha, matrix in zip(alphas, matrices, strict=True):
            penalty = alpha * mean_distance(gram.diagonal(), rows.weights)
            matrix.copy_(gram).diagonal().add_(penalty)
            factor = torch.linalg.cholesky(matrix)
            torch.cholesky_inverse(factor, out=matrix)
            matrix.mul_(penalty).addmm_(unit, unit.T, alpha=-1)
        targets = roots * rows.targets
        return cls(
            roots,
            targets,
            matrices,
            residuals=matrices @ targets,
            factors=gram.new_empty(len(alphas), 0, number),
            factor_residuals=gram.new_empty(len(alphas), 0, len(targets.T)),
        )

    def without(self, rows: Tensor) -> 'ResidualMatrices':
        """See :class:`LeaveOut`."""
        _, root = self._solve_block(rows)
        left = self.factors[..., rows].mT
        across = self.matrices[:, rows] - left @ self.factors
        new, residuals = (
            torch.linalg.solve_triangular(root, x, upper=False)
            for x in (across, self._get_residuals(rows))
        )
        return replace(
            self,
            factors=torch.cat([self.factors, new], 1),
            factor_residuals=torch.cat([self.factor_residuals, residuals], 1),
        )

    def scores(self, rows: Tensor) -> Tensor:
        """See :class:`LeaveOut`."""
        solution, _ = self._solve_block(rows)
        return (self.targets[rows] - solution) / self.roots[rows]

    def _get_residuals(self, rows: Tensor) -> Tensor:
        left = self.factors[..., rows].mT
        return self.residuals[:, rows] - left @ self.factor_residuals

    def _solve_block(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return R_bb^-1 (R sY)_b (A, B, K), and the Cholesky root of R_bb."""
        right = self.factors[..., rows]
        block = self.matrices[:, rows[:, None], rows] - right.mT @ right
        root = torch.linalg.cholesky(block)
        return torch.cholesky_solve(self._get_residuals(rows), root), root


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
        weighted = (rows.weights * rows.features).T
        return cls(
            rows.weights.sum(),
            weighted.sum(1),
            (rows.weights * rows.targets).sum(0),
            weighted @ rows.features,
            weighted @ rows.targets,
        )

    def __sub__(self, other: 'Moments') -> 'Moments':
        return Moments(
            self.weight - other.weight,
            self.features - other.features,
            self.targets - other.targets,
            self.squares - other.squares,
            self.products - other.products,
        )

    def solve(self, penalty: Tensor) -> LinearClassifier:
        """Solve the normal equations of the centered rows."""
        mean = self.features / self.weight
        matrix = self.squares - self.features[:, None] * mean
        matrix.diagonal().add_(penalty)
        products = self.products - mean[:, None] * self.targets
        root = torch.linalg.cholesky(matrix)
        weight = torch.cholesky_solve(products, root).T
        return LinearClassifier(
            weight, self.targets / self.weight - weight @ mean
        )


@dataclass(frozen=True)
class RowMoments:
    """Moments of more rows than features, from which rows are subtracted.

    Args:
        rows (WeightedRows): All rows, centered.
        penalties (Tensor): Penalties (A,).
        moments (Moments): Moments of the rows that are not left out.
    """

    rows: WeightedRows
    penalties: Tensor
    moments: Moments

    @classmethod
    def from_centered(
        cls, rows: WeightedRows, alphas: Sequence[float]
    ) -> 'RowMoments':
        """Sum over all rows."""
        moments = Moments.from_rows(rows)
        scale = mean_distance(moments.squares.diagonal(), moments.weight)
        return cls(rows, scale * scale.new_tensor(alphas), moments)

    def without(self, rows: Tensor) -> 'RowMoments':
        """See :class:`LeaveOut`."""
        left_out = Moments.from_rows(self.rows.select(rows))
        return replace(self, moments=self.moments - left_out)

    def scores(self, rows: Tensor) -> Tensor:
        """See :class:`LeaveOut`."""
        moments, tested = self.without(rows).moments, self.rows.features[rows]
        return torch.stack(
            [moments.solve(x).scores(tested) for x in self.penalties]
        )


def mean_distance(squares: Tensor, weights: Tensor) -> Tensor:
    """Mean squared distance from the mean, from weighted squares (N,).

    It is above 0 for equal rows, too: they get the mean target.
    """
    smallest = torch.finfo(squares.dtype).tiny ** 0.5
    return (squares.sum() / weights.sum()).clamp(min=smallest)


def solve_dual(
    gram: Tensor, targets: Tensor, weights: Tensor, alpha: float
) -> tuple[Tensor, Tensor]:
    """Ridge regression from the inner products (N, N) of its rows.

    For weights v that sum to 1, centered rows have the inner products
    G - G v 1^T - 1 v^T G + v^T G v.

    Returns:
        tuple[Tensor, Tensor]: Coefficients (N, K), which sum to 0 over the
        rows, and intercept (K,): a row with the inner products g (N,) has the
        scores ``g @ coefficients + intercept``.
    """
    shares = weights / weights.sum()
    means = gram @ shares
    centered = gram - means - means.T + shares.T @ means
    roots = weights.sqrt()
    centered *= roots * roots.T
    penalty = alpha * mean_distance(centered.diagonal(), weights)
    centered.diagonal().add_(penalty)
    target = weighted_mean(targets, weights)
    root = torch.linalg.cholesky(centered)
    solution = torch.cholesky_solve(roots * (targets - target), root)
    coefficients = roots * solution
    return coefficients, target - (means.T @ coefficients)[0]


def ridge(features, one_hot, weights, alphas) -> list[LinearClassifier]:
    """Fit ridge regression to one-hot labels; the bias is not penalized."""
    mean = weighted_mean(features, weights)
    rows = WeightedRows(features - mean, one_hot, weights)
    if rows.is_wide:
        gram = rows.features @ rows.features.T
        solutions = [solve_dual(gram, one_hot, weights, x) for x in alphas]
        fitted = [
            LinearClassifier(coefficients.T @ rows.features, bias)
            for coefficients, bias in solutions
        ]
    else:
        fit = RowMoments.from_centered(rows, alphas)
        fitted = [fit.moments.solve(penalty) for penalty in fit.penalties]
    return [
        LinearClassifier(x.weight, x.bias - x.weight @ mean) for x in fitted
    ]
