# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Random samples, stratified by predicted class and score."""

import numpy as np

from mmclca.utils.messages import check_integer

PER_STRATUM = 2  # photos to label, the least that shows differences inside
# bounds for the assumed error probability: a score is not a promise
MIN_ERROR, MAX_ERROR = 0.03, 0.97


def stratify(probabilities: np.ndarray, number: int) -> np.ndarray:
    """Divide classified photos into strata by predicted class and score.

    Photos are ordered by predicted class, then by score, and cut into
    ``number / 2`` strata. Each stratum has about the same sum of error
    standard deviations, by the scores. Two photos per stratum
    are then the allocation by J. Neyman, `On the Two Different Aspects of the
    Representative Method <https://doi.org/10.2307/2342192>`_ (1934). Rare
    classes share a stratum with their neighbors in the order.

    Args:
        probabilities (np.ndarray): Class probabilities (N, K).
        number (int): Photos to label.

    Returns:
        np.ndarray: Stratum number (N,), from 1.
    """
    scores = probabilities.max(axis=1)
    errors = np.clip(1 - scores, MIN_ERROR, MAX_ERROR)
    deviations = np.sqrt(errors * (1 - errors))
    order = np.lexsort((scores, probabilities.argmax(axis=1)))
    shares = np.cumsum(deviations[order])
    # rounded: the strata do not depend on the last digits of the scores
    shares = np.round(shares / shares[-1], 6)
    count = max(1, min(number, len(scores)) // PER_STRATUM)
    strata = np.empty(len(scores), dtype=int)
    strata[order] = np.clip(np.ceil(shares * count), 1, count)
    return np.unique(strata, return_inverse=True)[1] + 1


def draw_sample(strata: np.ndarray, number: int, seed: int = 0) -> np.ndarray:
    """Draw photos at random from each stratum.

    Strata with fewer photos than their share leave the difference to the
    largest strata. The result is in random order, so that its first photos
    are a random sample, too.

    Args:
        strata (np.ndarray): Stratum number (N,), from 1.
        number (int): Photos to draw.
        seed (int): Random seed. Defaults to 0.

    Returns:
        np.ndarray: Positions (n,), all if there are not more than ``number``.

    Raises:
        Error: If ``number`` is not an integer above 0.
    """
    check_integer(1, number=number)
    rng = np.random.default_rng(seed)
    allocated = allocate(np.bincount(strata)[1:], number)
    drawn = [
        rng.permutation(np.flatnonzero(strata == stratum))[:count]
        for stratum, count in enumerate(allocated, start=1)
    ]
    return rng.permutation(np.concatenate(drawn))


def allocate(sizes: np.ndarray, number: int) -> np.ndarray:
    """Distribute photos to label evenly over strata.

    Args:
        sizes (np.ndarray): Photos per stratum (H,).
        number (int): Photos to distribute.

    Returns:
        np.ndarray: Photos to label per stratum (H,), at most ``sizes``.
    """
    allocated = np.zeros_like(sizes)
    for _ in range(min(number, sizes.sum())):
        # the fewest labels, then the most photos without a label
        is_open = allocated < sizes
        fewest = allocated[is_open].min()
        candidates = np.flatnonzero(is_open & (allocated == fewest))
        left = sizes[candidates] - allocated[candidates]
        allocated[candidates[left.argmax()]] += 1
    return allocated
