# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Calibrated class scores, and settings by likelihood."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from .settings import PRIOR_DEVIATION, ProbeSetting

TOLERANCE = 1e-6  # between equal likelihoods, after rounding
MAX_STEPS, SMALL_STEP = 50, 1e-4  # for Newton's method, relative


def fit_temperature(logits: Tensor, labels: Tensor, tested: int) -> float:
    """Fit the temperature that calibrates class scores (..., N, K).

    C. Guo et al., `On Calibration of Modern Neural Networks
    <https://arxiv.org/abs/1706.04599>`_ (2017). The temperature minimizes the
    cross-entropy. Labels are smoothed as in Platt scaling, by one correct and
    one wrong image among the ``tested`` independent images: a few correct
    images do not give certainty. Scores are NaN for images that were not
    tested.

    The cross-entropy is convex in the inverse temperature, which Newton's
    method finds; steps outside its bracket are replaced by bisection.
    """
    labels = labels.expand(logits.shape[:-1])
    is_tested = ~logits[..., 0].isnan()
    scores, labels = logits[is_tested].double(), labels[is_tested]
    scores = scores - scores.mean(1, keepdim=True)
    right = scores.gather(1, labels[:, None])
    target = (1 - 1 / (tested + 2)) * float(right.mean())
    tiny = 1e-12 * max(float(scores.abs().max()), 1e-12)
    inverse = 1 / (float(scores.square().mean().sqrt()) + tiny)
    low, high = 0.0, math.inf
    for _ in range(MAX_STEPS):
        shares = (inverse * scores).softmax(1)
        expected = (shares * scores).sum(1)
        variance = (shares * scores.square()).sum(1) - expected.square()
        slope = target - float(expected.mean())
        low, high = (inverse, high) if slope > 0 else (low, inverse)
        new = inverse + slope / (float(variance.mean()) + tiny**2)
        if not low < new < high:
            new = 2 * inverse if high == math.inf else (low + high) / 2
        last, inverse = inverse, new
        if abs(inverse - last) <= SMALL_STEP * last:
            break
    return 1 / inverse


def best_setting(
    scores: Sequence[Tensor],
    labels: Sequence[Tensor],
    settings: Sequence[ProbeSetting],
    tested: int,
) -> int:
    """Find the most likely setting, given a prior.

    Calibrated scores give the likelihood for labels in left-out images, see
    :func:`fit_temperature`. It is more evidence than the accuracy, since
    each score changes it. The prior is normal around the default setting, with
    ``PRIOR_DEVIATION``: few images need clear evidence against the default,
    many images outweigh it. ``tools/research/classifier_choice.py`` compares
    such rules.

    Args:
        scores (Sequence[Tensor]): Scores (S, n, K) per fold for S settings,
            the default first.
        labels (Sequence[Tensor]): Labels (n,) per fold.
        settings (Sequence[ProbeSetting]): The S settings.
        tested (int): Independent images in all folds.

    Returns:
        int: Its position; the first among equally likely settings, and the
        default without folds.
    """
    if not scores:
        return 0
    default, targets = settings[0], torch.cat([*labels])
    smoothing = 1 / (tested + 2)
    posterior = []
    for position, setting in enumerate(settings):
        logits = torch.cat([x[position] for x in scores])
        temperature = fit_temperature(logits, targets, tested)
        cross_entropy = F.cross_entropy(
            logits.double() / temperature, targets, label_smoothing=smoothing
        )
        powers = math.log10(setting.alpha / default.alpha)
        distance = setting.late_cls_weight**2 + powers**2
        posterior.append(
            -tested * float(cross_entropy) - distance / 2 / PRIOR_DEVIATION**2
        )
    clear = max(posterior) - TOLERANCE
    return next(i for i, x in enumerate(posterior) if x >= clear)
