# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Warn if new photos differ from the training photos of a model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from mmclca.apis import TokenReductionInferencer
from mmclca.checkpoints.model_folder import ModelFolder
from mmclca.errors import Error
from mmclca.evaluation.calibration_file import read_calibration
from mmclca.evaluation.open_set import NEAREST
from mmclca.evaluation.shift import ScoredPhotos, estimate_shift_p_value
from mmclca.models.heads import NearestHead, nearest_of_other_groups

MIN_PHOTOS = 10
LEVEL = 0.05  # largest p-value of a warning
MAX_COMPARED = 1000  # random training photos, if there are more


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
        return (
            f'The photos were not compared with the training photos: {error}'
        )
    if p_value is None or p_value >= LEVEL:
        return ''
    bound = next((x for x in (0.001, 0.01) if p_value < x), None)
    written = f'p < {bound}' if bound else f'p = {p_value:.2f}'
    difference = f'These photos differ from the training photos ({written})'
    return f'{difference}: {consequence}'


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
    threshold, head = inferencer.threshold, inferencer.model.head
    distinct = {
        (result['known_score'], result['pred_score']): result
        for result in results
        if 'error' not in result
    }
    if (
        len(distinct) < MIN_PHOTOS
        or threshold is None
        or threshold.score != NEAREST
        or not isinstance(head, NearestHead)
        or folder.read_record().get('final') == 'trained'
    ):
        return None
    new = ScoredPhotos(
        torch.from_numpy(
            np.stack([x['pred_scores'] for x in distinct.values()])
        ),
        torch.tensor([similarity for similarity, _ in distinct]),
    )
    training = score_training_photos(folder, head, new)
    return estimate_shift_p_value(training, new)


def score_training_photos(
    folder: ModelFolder, head: NearestHead, new: ScoredPhotos
) -> ScoredPhotos:
    """Score the training photos, of the same classes, as if they were new.

    Raises:
        Error: If the stored probabilities are missing, damaged or of an
            earlier version.
    """
    is_possible = ~new.probabilities.isnan().any(0)
    calibration = read_calibration(folder, len(is_possible))
    if len(calibration.labels) != len(head.references):
        raise Error(
            f'{folder.cv_probabilities} has {len(calibration.labels)} photos, '
            f'but model.pth {len(head.references)}; fit again with '
            '`overwrite=True`'
        )
    is_tested = ~calibration.probabilities.isnan().any(1)
    compared = torch.where(is_tested & is_possible[calibration.labels])[0]
    if len(compared) > MAX_COMPARED:
        generator = torch.Generator().manual_seed(0)
        order = torch.randperm(len(compared), generator=generator)
        compared = compared[order[:MAX_COMPARED]]
    probabilities = calibration.probabilities[compared].clone()
    probabilities[:, ~is_possible] = torch.nan
    references = head.references.cpu()
    return ScoredPhotos(
        probabilities,
        nearest_of_other_groups(references, calibration.groups, compared),
    )
