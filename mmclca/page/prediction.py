# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Prediction for a photo, and the remaining patches."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan

import cv2
from mmengine.dataset import default_collate

from mmclca.apis import TokenReductionInferencer, best_classes
from mmclca.datasets.batches import make_view
from mmclca.visualization.kept_patches import KeptPatches, find_kept_patches

BATCH = 32  # photos per prediction, and per update of the progress
SIDE = 336  # minimum longer side of pictures, in pixels


@dataclass(frozen=True)
class Prediction:
    """Prediction for a photo, or for several photos of a plant.

    Args:
        scores (dict[str, float]): Five best scores by class, best first.
        is_known (bool | None): Whether the class is known; None without a
            threshold.
        known_score (float | None): Score compared with the threshold.
        gmacs (float): Cost in billion multiply-accumulates; NaN if not asked.
    """

    scores: dict[str, float]
    is_known: bool | None
    known_score: float | None
    gmacs: float = nan

    @classmethod
    def from_result(
        cls, result: dict, classes: Sequence[str], gmacs: float = nan
    ) -> 'Prediction':
        """Take the best classes of a result."""
        best = best_classes(result, classes)
        return cls(
            scores={entry['name']: entry['score'] for entry in best},
            is_known=result['known'],
            known_score=result['known_score'],
            gmacs=gmacs,
        )


def predict_photo(
    inferencer: TokenReductionInferencer, packed: dict, with_cost: bool = False
) -> dict:
    """Return the result for a photo, prepared by ``inferencer.prepare``."""
    (sample,) = inferencer.forward(default_collate([packed]), with_cost)
    sample.set_metainfo(dict(image='leaf'))
    (result,) = inferencer.postprocess([sample], None)
    return result


def classify(inferencer: TokenReductionInferencer, packed: dict) -> Prediction:
    """Classify a photo, and count the cost."""
    result = predict_photo(inferencer, packed, with_cost=True)
    return Prediction.from_result(result, inferencer.classes, result['gmacs'])


def show_kept_patches(
    inferencer: TokenReductionInferencer, packed: dict
) -> KeptPatches:
    """Draw the remaining patches of a photo after each stage."""
    view = make_view(inferencer.model, 'leaf', packed['inputs'])
    scale = max(1.0, SIDE / max(view.image.shape[:2]))
    image = cv2.resize(
        view.image, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC
    )
    (patches,) = find_kept_patches(
        inferencer.model, [replace(view, image=image)]
    )
    return patches
