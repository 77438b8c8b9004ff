# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Prediction sets with a guaranteed coverage, such as 95%.

The sets are cross-conformal: V. Vovk, `Cross-conformal predictors
<https://arxiv.org/abs/1208.0806>`_ (2015); R. F. Barber et al., `Predictive
inference with the jackknife+ <https://arxiv.org/abs/1905.02928>`_ (2021), CV+;
Y. Romano et al., `Classification with Valid and Adaptive Coverage
<https://arxiv.org/abs/2006.02544>`_ (2020), for classes. Each photo has a
score from a model trained without it. If the fold models score a new photo,
the coverage is at least ``1 - 2 * alpha``, less a term vanishing with many
photos per fold (Barber et al., theorem 4). Here a new photo is scored by the
final model, trained on all photos: one model is enough. For this,
coverage is measured, not proven.

The score is a class probability divided by the largest one, similar to
H. Papadopoulos et al., `Conformal Prediction with Neural Networks
<https://doi.org/10.1109/ICTAI.2007.47>`_ (2007). So no set is empty, and a
restriction to some classes does not change the ratio between two classes.

With groups, such as plants, a new photo belongs to a new group, and groups
have equal weights: Y. Lee, R. F. Barber and R. Willett, `Distribution-free
inference with hierarchical data <https://arxiv.org/abs/2306.06342>`_ (2023).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mmclca.errors import Error

LEVELS = (50, 99)  # smallest and largest level in percent
UNITS = ('photo', 'group', 'day')  # what is exchangeable with a new one


def count_needed(level: float) -> int:
    """Return how many photos or groups a level in percent needs.

    With n of them, the best level is n / (n + 1).
    """
    return math.ceil(level / (100 - level) - 1e-9)


def compute_ratios(probabilities: Tensor) -> Tensor:
    """Divide class probabilities (..., K) by the largest one."""
    return probabilities / probabilities.amax(-1, keepdim=True)


def predict_sets(probabilities: Tensor, threshold: float) -> Tensor:
    """Return whether classes are in the prediction set, (..., K)."""
    return compute_ratios(probabilities) >= threshold


@dataclass(frozen=True)
class Calibration:
    """Probabilities by models trained without the photo.

    Args:
        probabilities (Tensor): Class probabilities (N, K), NaN for photos
            without a test, which count as never covered.
        labels (Tensor): Labels (N,).
        groups (Tensor): Group numbers (N,), such as plants; all different
            without groups.
        unit (str): What each group is: 'photo', 'group' or 'day'.
    """

    probabilities: Tensor
    labels: Tensor
    groups: Tensor
    unit: str = 'photo'

    @property
    def independent(self) -> int:
        """Group count."""
        return len(self.groups.unique())

    def select(self, photos: Tensor) -> 'Calibration':
        """Select photos by a mask (N,)."""
        return replace(
            self,
            probabilities=self.probabilities[photos],
            labels=self.labels[photos],
            groups=self.groups[photos],
        )

    def among(self, classes: Sequence[int]) -> 'Calibration':
        """Keep some classes and their photos, as if others could not occur.

        Args:
            classes (Sequence[int]): Their labels, in ascending order.
        """
        kept = torch.tensor(classes, dtype=torch.long)
        chosen = self.select(torch.isin(self.labels, kept))
        return replace(
            chosen,
            # zero if all other classes were more probable by far
            probabilities=chosen.probabilities[:, kept].clamp(min=1e-30),
            labels=torch.searchsorted(kept, chosen.labels),
        )

    def find_threshold(self, level: float) -> float:
        """Return the smallest ratio within a prediction set.

        Args:
            level (float): Share of photos whose set contains the class, in
                percent.

        Raises:
            Error: If there are too few photos or groups for the level.
        """
        self._check_number(level)
        ratios = compute_ratios(self.probabilities)
        ratios = ratios.gather(1, self.labels[:, None])[:, 0].double()
        _, inverse, counts = self.groups.unique(
            return_inverse=True, return_counts=True
        )
        # one further group is the new one
        weights = 1 / ((1 + len(counts)) * counts[inverse].double())
        is_tested = ~ratios.isnan()
        ratios, order = ratios[is_tested].sort(descending=True)
        covered = weights[is_tested][order].cumsum(0)
        position = int((covered < level / 100 - 1e-9).sum())
        if position == len(ratios):
            raise Error(
                f'{level:g}% cannot be guaranteed: {int((~is_tested).sum())} '
                f'of {len(is_tested)} photos are in classes with one '
                f'{self.unit}, which cannot be tested; add a second '
                f'{self.unit} to each class'
            )
        return float(ratios[position])

    def _check_number(self, level: float) -> None:
        """Raise an Error if there are too few photos or groups."""
        number, needed = self.independent, count_needed(level)
        if number < needed:
            raise Error(
                f'{level:g}% cannot be guaranteed: at least {needed} '
                f'{self.unit}s are needed, found {number}'
            )

    def measure_sizes(
        self, threshold: float, coarse: Sequence[int] | None = None
    ) -> 'SetSizes':
        """Measure the prediction sets for tested photos.

        Args:
            threshold (float): Smallest ratio in a set.
            coarse (Sequence[int], optional): Coarse label per class (K,).
                Defaults to None: all classes differ.
        """
        is_tested = ~self.probabilities.isnan().any(1)
        sets = predict_sets(self.probabilities[is_tested], threshold)
        sizes = sets.sum(1)
        is_coarse = sizes > 1
        if coarse is None:
            is_coarse &= False
        else:
            labels = torch.as_tensor(coarse).expand(sets.shape)
            smallest = labels.masked_fill(~sets, int(labels.max())).amin(1)
            largest = labels.masked_fill(~sets, -1).amax(1)
            is_coarse &= smallest == largest
        return SetSizes(
            mean=float(sizes.double().mean()),
            one_class=float((sizes == 1).double().mean()),
            two_classes=float((sizes == 2).double().mean()),
            coarse_class=float(is_coarse.double().mean()),
        )


@dataclass(frozen=True)
class SetSizes:
    """Prediction set sizes.

    Args:
        mean (float): Mean class count.
        one_class (float): Share of photos with one class, 0 to 1.
        two_classes (float): Share of photos with two classes.
        coarse_class (float): Share of photos with several classes, all in
            one coarse class.
    """

    mean: float
    one_class: float
    two_classes: float
    coarse_class: float
