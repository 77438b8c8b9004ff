# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Store what prediction sets need with an exported model."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import torch

from mmclca.evaluation.conformal import Calibration

# limit of a web app: 1.3 MB
MAX_NUMBERS = 250_000


def describe_sets(
    calibration: Calibration, coarse_classes: Mapping[str, str]
) -> dict[str, Any]:
    """Describe a calibration in plain values.

    Above ``MAX_NUMBERS`` probabilities, the first groups of a random order
    are stored, which are as exchangeable with new ones as all.

    Args:
        calibration (Calibration): Calibration of the model.
        coarse_classes (Mapping[str, str]): Coarse class by class.

    Returns:
        dict: ``probabilities``, float32 numbers (N, K) in base 64, little
        endian; ``labels`` (N,), ``groups`` (N,), ``unit`` and
        ``coarse_classes``.
    """
    calibration = _shorten(calibration)
    numbers = calibration.probabilities.numpy().astype('<f4')
    return dict(
        probabilities=b64encode(numbers.tobytes()).decode(),
        labels=calibration.labels.tolist(),
        groups=calibration.groups.tolist(),
        unit=calibration.unit,
        coarse_classes=dict(coarse_classes),
    )


def _shorten(calibration: Calibration) -> Calibration:
    """Select random groups with at most ``MAX_NUMBERS`` probabilities."""
    photos, classes = calibration.probabilities.shape
    if photos * classes <= MAX_NUMBERS:
        return calibration
    generator = torch.Generator().manual_seed(0)
    _, inverse, counts = calibration.groups.unique(
        return_inverse=True, return_counts=True
    )
    order = torch.randperm(len(counts), generator=generator)
    is_within = classes * counts[order].cumsum(0) <= MAX_NUMBERS
    return calibration.select(torch.isin(inverse, order[is_within]))
