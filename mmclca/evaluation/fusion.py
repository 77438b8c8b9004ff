# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Combine the predictions for several photos of one plant.

Photos of a plant are not independent: they share its age, its health and its
place. Each tells less than a photo of another plant, so sums of
log-probabilities are overconfident.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

# for models without an estimate, and mean and standard deviation of the prior
# distribution of estimates, see docs/plants.md
DEPENDENCE, SPREAD = 0.3, 0.2
MIN_PLANTS = 10  # with fewer plants, figures are too uncertain
MAX_PHOTOS = 8  # photos per plant to choose the dependence
_CHOICES = [step / 20 for step in range(21)]
_ORDERS = 8  # random orders of the photos of a plant


def effective_number(
    number: int | Tensor, dependence: float
) -> float | Tensor:
    """Return the effective number of dependent photos of a plant.

    It is ``n / (1 + (n - 1) * dependence)``: n for independent photos
    (``dependence`` 0), and 1 if they all tell the same (1). It is the size of
    an independent sample with the same variance, for photos with this
    correlation: L. Kish, Survey Sampling (1965), section 5.4.
    """
    return number / (1 + (number - 1) * dependence)


def combine_photos(log_probabilities: Tensor, dependence: float) -> Tensor:
    """Combine the predictions for several photos of one plant.

    The result is a logarithmic opinion pool: the mean of the logarithms, times
    the :func:`effective_number` of photos. With a dependence of 1 it is their
    geometric mean; with 0 their product, as for independent photos. See
    C. Genest, J. V. Zidek, `Combining Probability Distributions
    <https://doi.org/10.1214/ss/1177013825>`_ (1986), section 3.

    Args:
        log_probabilities (Tensor): Logarithms of the class probabilities, or
            class scores before softmax, (..., n, K) for n photos.
        dependence (float): Correlation of the photos of a plant, 0 to 1.

    Returns:
        Tensor: Logarithms of the class probabilities of the plant (..., K).
    """
    number = log_probabilities.shape[-2]
    mean = log_probabilities.log_softmax(-1).mean(-2)
    return (effective_number(number, dependence) * mean).log_softmax(-1)


@dataclass(frozen=True)
class PlantFigures:
    """Accuracy by the number of photos per plant, and their dependence.

    Args:
        plants (int): Plants with at least ``len(accuracies)`` photos.
        accuracies (list[float]): Accuracy with 1, 2, ... photos of these
            plants.
        dependence (float): Dependence of the photos of a plant, for
            :func:`combine_photos`.
    """

    plants: int
    accuracies: list[float]
    dependence: float


def measure_plants(
    logits: Tensor, labels: Tensor, plants: Sequence[str], max_photos: int = 3
) -> PlantFigures | None:
    """Measure predictions from several photos per plant.

    All plants count equally. The dependence is that of
    :func:`choose_dependence`.

    Args:
        logits (Tensor): Cross-validated class scores (R, N, K) for R repeats,
            NaN if not tested. Each plant is left out as a whole.
        labels (Tensor): Labels (N,).
        plants (Sequence[str]): Plant of each photo (N,).
        max_photos (int): Most photos per plant of ``accuracies``. Defaults to
            3.

    Returns:
        PlantFigures: The figures. None if a group has photos of several
        classes, so that it is not a plant, or fewer than ``MIN_PLANTS`` have
        two tested photos.
    """
    members = _find_members(logits, labels, plants)
    if members is None:
        return None
    sizes = np.array([len(x) for x in members])
    numbers = [
        number
        for number in range(2, max_photos + 1)
        if (sizes >= number).sum() >= MIN_PLANTS
    ]
    if not numbers:
        return None
    several = [x for x in members if len(x) > 1]
    sums = _accumulate(logits.log_softmax(-1), several)
    classes = torch.tensor([int(labels[x[0]]) for x in several])
    counted = torch.tensor([len(x) >= numbers[-1] for x in several])
    is_correct = sums[:, counted].argmax(-1) == classes[counted, None]
    accuracies = is_correct.float().mean((0, 1))[: numbers[-1]]
    return PlantFigures(
        plants=int(counted.sum()),
        accuracies=accuracies.tolist(),
        dependence=choose_dependence(sums, classes),
    )


def _find_members(
    logits: Tensor, labels: Tensor, plants: Sequence[str]
) -> list[np.ndarray] | None:
    """Return the tested photos of each plant; None for other groups."""
    _, units = np.unique(np.asarray(plants), return_inverse=True)
    tested = ~logits[..., 0].isnan().any(0).numpy()
    positions = [np.where(units == unit)[0] for unit in range(units.max() + 1)]
    if any(len(labels[x].unique()) > 1 for x in positions):
        return None
    return [x[tested[x]] for x in positions]


def _accumulate(
    log_probabilities: Tensor, members: Sequence[np.ndarray]
) -> Tensor:
    """Sum log-probabilities over the first 1, 2, ... photos of plants.

    Photos are in random orders. The result is (R, P, M, K) for R repeats times
    orders, P plants and up to M photos, NaN beyond the photos of a plant.
    """
    rng = np.random.default_rng(0)
    width = min(max(len(x) for x in members), MAX_PHOTOS)
    index = np.full((_ORDERS, len(members), width), -1)
    for order in index:
        for row, photos in zip(order, members, strict=True):
            chosen = rng.permutation(photos)[:width]
            row[: len(chosen)] = chosen
    sums = log_probabilities[:, torch.from_numpy(index)]
    sums[:, torch.from_numpy(index < 0)] = torch.nan
    return sums.flatten(0, 1).cumsum(2)


def choose_dependence(sums: Tensor, labels: Tensor) -> float:
    """Choose the dependence with the smallest cross-entropy.

    A normal prior distribution around ``DEPENDENCE`` decides if plants are few
    or all are recognized: then the cross-entropy hardly depends on it.

    Args:
        sums (Tensor): Sums of log-probabilities over the first 1, 2, ... M
            photos (R, P, M, K) of P plants in R orders, NaN beyond the photos
            of a plant.
        labels (Tensor): Labels of the plants (P,).
    """
    numbers = torch.arange(2, sums.shape[2] + 1)
    sums = sums[:, :, 1:].double()
    losses = []
    for dependence in _CHOICES:
        weights = effective_number(numbers, dependence) / numbers
        pooled = (weights[:, None] * sums).log_softmax(-1)
        at_label = pooled[:, range(len(labels)), :, labels]
        per_plant = -at_label.nanmean((1, 2))
        prior = ((dependence - DEPENDENCE) / SPREAD) ** 2 / 2
        losses.append(float(per_plant.sum()) + prior)
    return _CHOICES[int(np.argmin(losses))]
