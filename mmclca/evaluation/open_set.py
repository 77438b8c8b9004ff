# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Telling images of known classes from those of unknown ones.

Scores are high for what is known. Known images are the positive ones.
"""

import math

import torch
from torch import Tensor


def max_softmax(logits: Tensor) -> Tensor:
    """The largest class probability.

    Hendrycks & Gimpel, `A Baseline for Detecting Misclassified and
    Out-of-Distribution Examples in Neural Networks
    <https://arxiv.org/abs/1610.02136>`_ (2017), section 2.

    Args:
        logits (Tensor): Class scores before softmax, (N, classes).

    Returns:
        Tensor: (N,), in 0 to 1.
    """
    return logits.softmax(dim=-1).amax(dim=-1)


def energy(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """The negative free energy, T logsumexp(logits / T).

    Liu et al., `Energy-based Out-of-distribution Detection
    <https://arxiv.org/abs/2010.03759>`_ (2020), equations 4 and 7.

    Args:
        logits (Tensor): Class scores before softmax, (N, classes).
        temperature (float): T. Defaults to 1.

    Returns:
        Tensor: (N,).
    """
    return temperature * (logits / temperature).logsumexp(dim=-1)


SCORES = dict(max_softmax=max_softmax, energy=energy)


def auroc(known: Tensor, unknown: Tensor) -> float:
    """Area under the curve of true over false positive rate.

    How often a known image has a higher score than an unknown one; ties
    count half.

    Args:
        known (Tensor): Scores of known images (N,).
        unknown (Tensor): Scores of unknown images (M,).

    Raises:
        ValueError: If one is empty or has NaN.
    """
    _check(known=known, unknown=unknown)
    ordered = unknown.sort().values
    lower = torch.searchsorted(ordered, known)
    not_higher = torch.searchsorted(ordered, known, right=True)
    wins = (lower + not_higher).double() / 2
    return float(wins.mean() / len(unknown))


def false_positive_rate(
    known: Tensor, unknown: Tensor, tpr: float = 0.95
) -> float:
    """Share of unknown images accepted where ``tpr`` of known ones are.

    Args:
        known (Tensor): Scores of known images (N,).
        unknown (Tensor): Scores of unknown images (M,).
        tpr (float): Share of known images, at least. Defaults to 0.95.

    Raises:
        ValueError: If one is empty or has NaN, or ``tpr`` is out of range.
    """
    _check(unknown=unknown)
    return float((unknown >= fit_threshold(known, tpr)).double().mean())


def fit_threshold(known: Tensor, accept: float = 0.95) -> float:
    """The highest threshold that accepts a share of known images.

    An image is accepted if its score is not below.

    Args:
        known (Tensor): Scores of known images (N,).
        accept (float): Share to accept, at least; above 0, 1 is all.
            Defaults to 0.95.

    Raises:
        ValueError: If there is no score or a NaN, or the share is out of
            range.
    """
    _check(known=known)
    if not 0 < accept <= 1:
        raise ValueError(f'accept={accept} must be above 0, at most 1')
    # of 20 images 0.95 are 19; the product may be a little more in floats
    count = math.ceil(accept * len(known) - 1e-9)
    return float(known.sort(descending=True).values[max(count, 1) - 1])


def measure_scores(
    logits: dict[str, Tensor], accept: float = 0.95
) -> list[dict[str, str | float]]:
    """Tell the threshold of each score, and how well it works.

    Args:
        logits (dict[str, Tensor]): Class scores (N, classes) of ``known``
            images, and to measure with of ``unknown`` and other known images,
            ``test``.
        accept (float): Share of known images to accept. Defaults to 0.95.
    """
    rows = []
    for name, function in SCORES.items():
        scores = {part: function(x) for part, x in logits.items()}
        threshold = fit_threshold(scores['known'], accept)
        row = dict(score=name, threshold=threshold)
        if 'unknown' in scores:
            test, unknown = scores['test'], scores['unknown']
            row.update(
                auroc=auroc(test, unknown),
                fpr95=false_positive_rate(test, unknown),
                known_lost=_share(test < threshold),
                unknown_rejected=_share(unknown < threshold),
            )
        rows.append(row)
    return rows


def _share(flags: Tensor) -> float:
    return float(flags.double().mean())


def _check(**scores: Tensor) -> None:
    for name, values in scores.items():
        if len(values) == 0:
            raise ValueError(f'there is no {name} image to score')
        if values.isnan().any():
            raise ValueError(
                f'{int(values.isnan().sum())} of {len(values)} scores of '
                f'{name} images are NaN: the weights are broken, or did not '
                'converge'
            )
