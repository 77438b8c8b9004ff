# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Class scores of images by classifiers fitted without them."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from .classifiers import ProbeData
from .leave_out import LeaveOut, leave_out
from .likelihood import best_setting
from .subset_scores import SubsetScores


class FoldScores(Protocol):
    """Scores by classifiers fitted to the other images, for each setting."""

    @property
    def data(self) -> ProbeData:
        """All images."""
        ...

    def without(self, images: np.ndarray) -> 'FoldScores':
        """Leave out images for good, at some positions."""
        ...

    def scores(self, images: np.ndarray) -> Tensor:
        """Score the first view of images (S, n, K), left out as well."""
        ...


@dataclass(frozen=True)
class RefittedScores:
    """Scores by classifiers that are fitted in each fold.

    Args:
        subsets (SubsetScores): Scores by classifiers fitted to some images.
        left_out (np.ndarray): Whether an image is left out (N,).
    """

    subsets: SubsetScores
    left_out: np.ndarray

    @property
    def data(self) -> ProbeData:
        """All images."""
        return self.subsets.data

    def without(self, images: np.ndarray) -> 'RefittedScores':
        """See :class:`FoldScores`."""
        left_out = self.left_out.copy()
        left_out[images] = True
        return RefittedScores(self.subsets, left_out)

    def scores(self, images: np.ndarray) -> Tensor:
        """See :class:`FoldScores`."""
        train = np.where(~self.without(images).left_out)[0]
        return self.subsets.scores(train, images, self.data.settings)


@dataclass(frozen=True)
class SubsetRegressions:
    """Regressions on one feature subset.

    Args:
        shares (Tensor): Weight of each regression in each setting (S, A).
        regressions (LeaveOut): One regression per alpha in use.
    """

    shares: Tensor
    regressions: LeaveOut


@dataclass(frozen=True)
class LeftOutScores:
    """Scores by ridge regressions without fitting them again.

    Images have equal weights, and penalties are those of all images.

    Args:
        data (ProbeData): All images.
        subsets (list[SubsetRegressions]): Regressions per feature subset.
    """

    data: ProbeData
    subsets: list[SubsetRegressions]

    @classmethod
    def from_data(cls, data: ProbeData) -> 'LeftOutScores':
        """Fit the regressions of all settings."""
        rows, settings = data.rows, data.settings
        subsets = []
        for subset, columns in enumerate(data.feature_subsets):
            weights = [x.subset_weights[subset] for x in settings]
            used = [data.get_alpha(subset, x) for x in settings]
            pairs = [*zip(used, weights, strict=True)]
            alphas = [*dict.fromkeys(alpha for alpha, x in pairs if x)]
            shares = [
                [share * (alpha == x) for x in alphas]
                for alpha, share in pairs
            ]
            subsets.append(
                SubsetRegressions(
                    torch.tensor(shares, dtype=torch.float64),
                    leave_out(rows.center_columns(columns), alphas),
                )
            )
        return cls(data, subsets)

    def without(self, images: np.ndarray) -> 'LeftOutScores':
        """See :class:`FoldScores`."""
        rows = self.data.find_rows(images)
        subsets = [
            replace(x, regressions=x.regressions.without(rows))
            for x in self.subsets
        ]
        return LeftOutScores(self.data, subsets)

    def scores(self, images: np.ndarray) -> Tensor:
        """See :class:`FoldScores`."""
        rows = self.data.find_rows(images)
        views = self.data.features.shape[1]
        scores = [
            torch.einsum(
                'sa,ank->snk',
                x.shares,
                x.regressions.scores(rows)[:, ::views].double(),
            )
            for x in self.subsets
        ]
        return torch.stack(scores).sum(0)


def prepare_fold_scores(data: ProbeData) -> FoldScores:
    """Prepare scores of folds, in closed form for ridge regression.

    Balanced class weights are those of each training part, whose regressions
    are fitted.
    """
    classifier = data.classifier
    if classifier.name == 'ridge' and classifier.class_weights is None:
        return LeftOutScores.from_data(data)
    return RefittedScores(SubsetScores(data), np.zeros(len(data.labels), bool))


def choose_setting(
    scores: FoldScores, images: np.ndarray, folds: int, seed: int
) -> int:
    """Select a setting by cross-validation on some images.

    Args:
        scores (FoldScores): Scores without all other images.
        images (np.ndarray): Positions of the images.
        folds (int): Number of folds.
        seed (int): Random seed of the folds.

    Returns:
        int: Position of the setting.
    """
    data = scores.data
    splitter = data.split_part(images)
    tests = [images[test] for _, test in splitter.folds(folds, seed)]
    return best_setting(
        [scores.scores(test).float() for test in tests],
        [data.labels[test] for test in tests],
        data.settings,
        splitter.tested,
    )
