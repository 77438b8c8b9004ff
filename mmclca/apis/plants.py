# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Results for plants, from the results for their photos."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from mmclca.evaluation.fusion import combine_photos
from mmclca.evaluation.open_set import Threshold

SMALLEST = 1e-30  # probabilities may be zero in float32


def combine_results(
    results: Sequence[dict],
    plants: Sequence[str],
    classes: Sequence[str],
    dependence: float,
    threshold: Threshold | None = None,
) -> list[dict]:
    """Combine the results for the photos of each plant.

    See :func:`mmclca.evaluation.fusion.combine_photos`. A plant is flagged as
    unknown if the mean ``known_score`` of its photos is below the threshold.

    Args:
        results (Sequence[dict]): Results of :class:`TokenReductionInferencer`.
        plants (Sequence[str]): Plant of each photo.
        classes (Sequence[str]): Class names.
        dependence (float): Dependence of the photos of a plant, 0 to 1.
        threshold (Threshold, optional): Threshold of the inferencer. Defaults
            to None.

    Returns:
        list[dict]: One result per plant, in the order of their first photos,
        with the same keys except that ``plant``, ``images`` (the combined
        photos) and ``unreadable`` (photos left out) replace ``image``. With
        ``error`` if no photo of the plant is readable.
    """
    members: dict[str, list[dict]] = {}
    for photo, plant in zip(results, plants, strict=True):
        members.setdefault(plant, []).append(photo)
    combined = []
    for plant, photos in members.items():
        readable = [photo for photo in photos if 'error' not in photo]
        unreadable = [x['image'] for x in photos if 'error' in x]
        result: dict[str, Any] = dict(
            plant=plant,
            images=[photo['image'] for photo in readable],
            unreadable=unreadable,
        )
        if readable:
            result |= _predict(readable, classes, dependence, threshold)
        else:
            result['error'] = f'{len(unreadable)} unreadable photos'
        combined.append(result)
    return combined


def _predict(
    photos: Sequence[dict],
    classes: Sequence[str],
    dependence: float,
    threshold: Threshold | None,
) -> dict:
    """Return the prediction for a plant with readable photos."""
    probabilities = np.stack([photo['pred_scores'] for photo in photos])
    # scores of classes that cannot occur are NaN
    can_occur = ~np.isnan(probabilities[0])
    logarithms = torch.from_numpy(probabilities[:, can_occur]).double()
    logarithms = logarithms.clamp(SMALLEST).log()
    scores = np.full_like(probabilities[0], np.nan)
    scores[can_occur] = combine_photos(logarithms, dependence).exp().numpy()
    label, is_known, known_score = int(np.nanargmax(scores)), None, None
    if threshold is not None:
        known_score = float(np.mean([x['known_score'] for x in photos]))
        is_known = known_score >= threshold.threshold
    return dict(
        pred_scores=scores,
        pred_label=label,
        pred_score=float(scores[label]),
        pred_class=classes[label],
        known=is_known,
        known_score=known_score,
    )
