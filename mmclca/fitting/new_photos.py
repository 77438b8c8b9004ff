# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Warn if new photos differ from the training photos of a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mmclca.apis import TokenReductionInferencer
from mmclca.checkpoints.model_folder import ModelFolder
from mmclca.errors import Error
from mmclca.evaluation.calibration_file import read_calibration
from mmclca.evaluation.open_set import NEAREST, SIMILARITIES
from mmclca.evaluation.shift import (
    References,
    ScoredPhotos,
    estimate_shift_p_value,
)
from mmclca.languages import text
from mmclca.models.heads import NearestHead

MIN_PHOTOS = 10
LEVEL = 0.05  # largest p-value of a warning
MAX_COMPARED = 1000  # training photos, if there are more


def describe_shift(
    folder: ModelFolder,
    inferencer: TokenReductionInferencer,
    results: Sequence[dict[str, Any]],
    consequence: str,
) -> str:
    """Describe how new photos differ, or why they were not compared.

    Args:
        folder (ModelFolder): Model folder.
        inferencer (TokenReductionInferencer): Its loaded model.
        results (Sequence[dict]): Results for photos that were not in
            training.
        consequence (str): What a difference means for the user.

    Returns:
        str: A warning; empty without a difference, and if the test does not
        apply, see :func:`compare_with_training`.
    """
    try:
        p_value = compare_with_training(folder, inferencer, results)
    except Error as error:  # damaged, or of an earlier version
        return text('test.not_compared', problem=error)
    if p_value is None or p_value >= LEVEL:
        return ''
    bound = next((x for x in (0.001, 0.01) if p_value < x), None)
    written = f'p < {bound}' if bound else f'p = {p_value:.2g}'
    return text('test.shift', p=written, consequence=consequence)


def choose_references(inferencer: TokenReductionInferencer) -> Tensor | None:
    """Choose the training photos with which new photos are compared.

    Args:
        inferencer (TokenReductionInferencer): A loaded model.

    Returns:
        Tensor | None: Positions (R,), evenly spaced if there are more than
        ``MAX_COMPARED``; None for a model without similarities.
    """
    threshold, head = inferencer.threshold, inferencer.model.head
    if (
        threshold is None
        or threshold.score != NEAREST
        or not isinstance(head, NearestHead)
    ):
        return None
    number = len(head.references)
    compared = min(number, MAX_COMPARED)
    return torch.linspace(0, number - 1, compared).round().long()


def compare_with_training(
    folder: ModelFolder,
    inferencer: TokenReductionInferencer,
    results: Sequence[dict[str, Any]],
) -> float | None:
    """Return the p-value of :func:`.estimate_shift_p_value`.

    The arguments are as for :func:`describe_shift`. Equal photos count
    once.

    Returns:
        float | None: None for less than ``MIN_PHOTOS`` photos, for a
        fine-tuned model, which has seen its training photos, and for a model
        without similarities.

    Raises:
        Error: If the scores of the training photos cannot be read.
    """
    positions = choose_references(inferencer)
    distinct = {
        (result['known_score'], result['pred_score']): result
        for result in results
        if 'error' not in result
    }
    if (
        len(distinct) < MIN_PHOTOS
        or positions is None
        or folder.read_record().get('final') == 'trained'
    ):
        return None
    stacked = {
        name: torch.from_numpy(np.stack([x[name] for x in distinct.values()]))
        for name in ('pred_scores', SIMILARITIES)
    }
    is_possible = ~stacked['pred_scores'].isnan().any(0)
    training = read_training(folder, inferencer, positions)
    is_compared = is_possible[training.references.labels]
    return training.select(is_compared, is_possible).compare(
        stacked['pred_scores'].nan_to_num(-1).argmax(1),
        stacked[SIMILARITIES][:, is_compared],
    )


@dataclass(frozen=True)
class TrainingPhotos:
    """Training photos of a model, for a comparison.

    Args:
        references (References): Their labels and groups.
        features (Tensor): Unit-length features (T, D).
        probabilities (Tensor): Cross-validated class probabilities (T, K),
            NaN for photos that were not tested.
    """

    references: References
    features: Tensor
    probabilities: Tensor

    def select(self, photos: Tensor, classes: Tensor) -> 'TrainingPhotos':
        """Select photos, and the classes that can occur, by masks."""
        references = self.references
        return TrainingPhotos(
            References(references.labels[photos], references.groups[photos]),
            self.features[photos],
            self.probabilities[photos].masked_fill(~classes, torch.nan),
        )

    def compare(self, predicted: Tensor, similarities: Tensor) -> float:
        """Return the p-value for new photos.

        Args:
            predicted (Tensor): Predicted labels of new photos (N,).
            similarities (Tensor): Cosine similarities (N, T).
        """
        scores = self.references.score_training(
            self.features @ self.features.T
        )
        is_tested = ~self.probabilities.isnan().all(1)
        tested = self.probabilities[is_tested].nan_to_num(-1)
        return estimate_shift_p_value(
            ScoredPhotos(tested.argmax(1), scores[is_tested]),
            ScoredPhotos(
                predicted, self.references.score_new(similarities, predicted)
            ),
        )


def read_training(
    folder: ModelFolder,
    inferencer: TokenReductionInferencer,
    positions: Tensor,
) -> TrainingPhotos:
    """Read training photos of a model.

    Args:
        folder (ModelFolder): Model folder.
        inferencer (TokenReductionInferencer): Its loaded model.
        positions (Tensor): Positions of the training photos (T,).

    Raises:
        Error: If the stored probabilities are missing, damaged or of an
            earlier version.
    """
    calibration = read_calibration(folder, len(inferencer.classes))
    references = inferencer.model.head.references
    if len(calibration.labels) != len(references):
        raise Error(
            f'{folder.cv_probabilities} has {len(calibration.labels)} photos, '
            f'but model.pth {len(references)}; fit again with '
            '`overwrite=True`'
        )
    return TrainingPhotos(
        References(
            calibration.labels[positions], calibration.groups[positions]
        ),
        references.cpu()[positions],
        calibration.probabilities[positions],
    )
