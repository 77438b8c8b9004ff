# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy, recall and their confidence interval."""

from math import sqrt
from statistics import NormalDist

import torch
import torch.nn.functional as F
from torch import Tensor


def accuracy(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the share of images that are named rightly.

    Args:
        scores (Tensor): Class scores (..., N, K), NaN where not tested.
        labels (Tensor): Classes of the images (N,).

    Returns:
        Tensor: (...,), NaN where nothing is tested.
    """
    return _right(scores, labels).nanmean(-1)


def recalls(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the share of each class that is named rightly; its mean is macro
    recall.

    Args:
        scores (Tensor): Class scores (R, N, K) of R repeats, NaN where not
            tested.
        labels (Tensor): Classes of the images (N,).

    Returns:
        Tensor: (K,), NaN where nothing is tested.
    """
    right = _right(scores, labels).nanmean(0)
    of_class = F.one_hot(labels, scores.shape[-1]).T.bool()
    return torch.stack([right[row].nanmean() for row in of_class])


def _right(scores: Tensor, labels: Tensor) -> Tensor:
    """Mark images named rightly (..., N), 0 or 1, NaN where not tested."""
    right = (scores.argmax(-1) == labels).float()
    return right.masked_fill(scores[..., 0].isnan(), torch.nan)


def wilson(
    share: float, number: float, level: float = 0.95
) -> tuple[float, float]:
    """Wilson interval of a share, which holds for few images too.

    E. B. Wilson, `Probable Inference, the Law of Succession, and Statistical
    Inference <https://doi.org/10.1080/01621459.1927.10502953>`_ (1927).

    Args:
        share (float): The share that is right, 0 to 1.
        number (float): Of how many independent images.
        level (float): Level of the interval. Defaults to 0.95.

    Returns:
        tuple[float, float]: Its ends; 0 and 1 where there is no image.
    """
    if number == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle = share + z * z / (2 * number)
    half = z * sqrt(share * (1 - share) / number + (z / (2 * number)) ** 2)
    scale = 1 + z * z / number
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)
