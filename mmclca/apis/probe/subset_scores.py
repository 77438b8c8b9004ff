# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Class scores by classifiers fitted to some of the images."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from .classifiers import ProbeData, weigh_images
from .ridge import multiply_rows, solve_dual
from .settings import ProbeSetting


@dataclass(frozen=True)
class SubsetScores:
    """Scores of images by classifiers fitted to others.

    Args:
        data (ProbeData): All images.
    """

    data: ProbeData

    @cached_property
    def grams(self) -> list[Tensor]:
        """Inner products of all rows (M, M), per feature subset."""
        rows = self.data.rows
        return [
            multiply_rows(rows.center_columns(columns).features)
            for columns in self.data.feature_subsets
        ]

    def scores(
        self,
        train: np.ndarray,
        test: np.ndarray,
        settings: Sequence[ProbeSetting],
    ) -> Tensor:
        """Fit a classifier per setting, and score other images (S, n, K).

        Ridge regression with few rows takes their inner products from those of
        all rows.
        """
        data = self.data
        if data.classifier.name == 'ridge' and data.rows.is_wide:
            return self._score_by_gram(train, test, settings)
        part, tested = data.part(train), data.features[test, 0]
        if data.classifier.name == 'logistic':
            part = part.in_span()
            tested = tested if part.basis is None else tested @ part.basis
        return torch.stack([x.scores(tested) for x in part.fit(settings)])

    def _score_by_gram(
        self,
        train: np.ndarray,
        test: np.ndarray,
        settings: Sequence[ProbeSetting],
    ) -> Tensor:
        data, views = self.data, self.data.features.shape[1]
        rows, tested = data.find_rows(train), data.find_rows(test)[::views]
        weights = weigh_images(data.labels[train], data.classifier)
        weights = weights.repeat_interleave(views, 0)
        targets = data.rows.targets[rows]
        scores = targets.new_zeros(len(settings), len(test), data.num_classes)
        for subset, gram in enumerate(self.grams):
            among = gram[rows[:, None], rows]
            inner = gram[tested[:, None], rows]
            by_alpha: dict[float, Tensor] = {}
            for setting, part in zip(settings, scores, strict=True):
                share = setting.subset_weights[subset]
                alpha = data.get_alpha(subset, setting)
                if share and alpha not in by_alpha:
                    coefficients, intercept = solve_dual(
                        among, targets, weights, alpha
                    )
                    by_alpha[alpha] = inner @ coefficients + intercept
                if share:
                    part += share * by_alpha[alpha]
        return scores
