# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Scores of rows by ridge regressions without them.

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
replaces the fits in all folds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from .ridge import (
    MAX_DOUBLE_ROWS,
    Moments,
    WeightedRows,
    mean_distance,
    multiply_rows,
    solve_dual,
)

# other forms need less memory for more rows, and less time for many more rows
# than features
MAX_RESIDUAL_ROWS, MAX_ROWS_PER_FEATURE = 10000, 3


class LeaveOut(Protocol):
    """Ridge regressions with several penalties on the same rows.

    The penalty is alpha times the mean squared distance from all rows to
    their mean, also after rows were left out.
    """

    def without(self, rows: Tensor) -> 'LeaveOut':
        """Leave out rows for good."""
        ...

    def scores(self, rows: Tensor) -> Tensor:
        """Score rows (A, B, K) by regressions on the others per alpha."""
        ...


def leave_out(rows: WeightedRows, alphas: Sequence[float]) -> LeaveOut:
    """Fit ridge regressions to centered rows, which can be left out."""
    number, width = rows.features.shape
    form: type[ResidualMatrices | InnerProducts | RowMoments]
    if number <= MAX_RESIDUAL_ROWS and number <= MAX_ROWS_PER_FEATURE * width:
        form = ResidualMatrices
    else:
        form = InnerProducts if rows.is_wide else RowMoments
    return form.from_centered(rows, alphas)


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
        scale = moments.scale
        return cls(rows, scale * scale.new_tensor(alphas), moments)

    def without(self, rows: Tensor) -> 'RowMoments':
        """See :class:`LeaveOut`."""
        left_out = self.rows.select(rows)
        return replace(self, moments=self.moments.without(left_out))

    def scores(self, rows: Tensor) -> Tensor:
        """See :class:`LeaveOut`."""
        moments, tested = self.without(rows).moments, self.rows.features[rows]
        return torch.stack(
            [moments.solve(x).scores(tested) for x in self.penalties]
        )


@dataclass(frozen=True)
class InnerProducts:
    """Inner products of many rows with more features, fitted in each fold.

    Residual matrices of all penalties would take too much memory, and one
    inverse of all rows takes as long as five Cholesky factors of 80% of them.

    Args:
        gram (Tensor): Inner products (N, N) of the centered rows.
        rows (WeightedRows): All rows, centered.
        alphas (Sequence[float]): Penalties relative to the scale.
        scale (Tensor): Mean squared distance of all rows from their mean.
        kept (Tensor): Whether a row is not left out (N,).
    """

    gram: Tensor
    rows: WeightedRows
    alphas: Sequence[float]
    scale: Tensor
    kept: Tensor

    @classmethod
    def from_centered(
        cls, rows: WeightedRows, alphas: Sequence[float]
    ) -> 'InnerProducts':
        """Multiply all rows."""
        gram, weights = multiply_rows(rows.features), rows.weights
        scale = mean_distance(weights[:, 0] * gram.diagonal(), weights)
        kept = torch.ones(len(gram), dtype=torch.bool)
        return cls(gram, rows, alphas, scale, kept)

    def without(self, rows: Tensor) -> 'InnerProducts':
        """See :class:`LeaveOut`."""
        return replace(self, kept=self.kept.index_fill(0, rows, False))

    def scores(self, rows: Tensor) -> Tensor:
        """See :class:`LeaveOut`."""
        (kept,) = torch.where(self.without(rows).kept)
        among = self.gram[kept[:, None], kept]
        inner = self.gram[rows[:, None], kept]
        targets, weights = self.rows.targets[kept], self.rows.weights[kept]
        scores = []
        for alpha in self.alphas:
            coefficients, intercept = solve_dual(
                among, targets, weights, alpha, self.scale
            )
            scores.append(inner @ coefficients + intercept)
        return torch.stack(scores)
