# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Stratified folds and random subsets that keep groups of images together.

A group, such as all photos of one plant, has the class of the first image.
Without groups, each image is its own group.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from torch import Tensor

from mmclca.errors import Error

Split = tuple[np.ndarray, np.ndarray]  # positions for training, for testing


class GroupedSplits:
    """Splits of images with labels (N,) and optional groups (N,).

    ``per_class`` (K,) is the number of groups per class.

    Raises:
        Error: If the numbers of groups and labels differ.
    """

    def __init__(
        self,
        labels: Sequence[int] | np.ndarray | Tensor,
        groups: Sequence | np.ndarray | None = None,
    ):
        self.labels = np.asarray(labels)
        groups = range(len(self.labels)) if groups is None else groups
        if len(groups) != len(self.labels):
            raise Error(
                f'{len(groups)} groups for {len(self.labels)} images; pass '
                'one group per image'
            )
        _, first, units = np.unique(
            np.asarray(groups), return_index=True, return_inverse=True
        )
        self._of_image = units.reshape(-1)
        self._labels = self.labels[first]
        # a class may have photos in groups of other classes only
        number = self.labels.max(initial=-1) + 1
        self.per_class = np.bincount(self._labels, minlength=number)

    @property
    def tested(self) -> int:
        """Number of groups whose class has at least two groups."""
        return int(self.per_class[self.per_class > 1].sum())

    def folds(self, folds: int, seed: int) -> Iterator[Split]:
        """Yield training and test positions of stratified folds.

        There are at most as many folds as groups in the largest class. Classes
        with one group are used for training only. The groups of a class are
        never all in one fold, which can happen with ``StratifiedGroupKFold``
        of scikit-learn.
        """
        folds = min(folds, self.per_class.max(initial=0))
        alone = self.per_class[self._labels] == 1
        order, _ = self._shuffled(seed)
        fold = np.empty_like(order)
        fold[order] = np.cumsum(~alone[order]) % max(folds, 1)
        fold[alone] = -1
        for i in range(folds if self.tested else 0):
            yield self._split(fold == i)

    def draw(self, numbers: np.ndarray, seed: int) -> np.ndarray:
        """Select ``numbers`` (K,) random groups per class, or all.

        Return the positions of their images.
        """
        order, rank = self._shuffled(seed)
        drawn = np.empty(len(order), bool)
        drawn[order] = rank < numbers[self._labels[order]]
        return np.where(drawn[self._of_image])[0]

    def _shuffled(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the groups in random order per class, and their ranks."""
        chance = np.random.default_rng(seed).permutation(len(self._labels))
        order = np.lexsort((chance, self._labels))
        starts = np.cumsum(self.per_class) - self.per_class
        return order, np.arange(len(order)) - starts[self._labels[order]]

    def _split(self, held_out: np.ndarray) -> Split:
        """Split the images by a mask of held-out groups.

        Images of classes without training images are moved to training, with
        all images of their groups.
        """
        test = held_out[self._of_image]
        moved = test & ~np.isin(self.labels, self.labels[~test])
        test &= ~np.isin(self._of_image, self._of_image[moved])
        return np.where(~test)[0], np.where(test)[0]
