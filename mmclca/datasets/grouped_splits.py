# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images to fit to and others to test on, class by class.

A unit is what must not be parted: an image, or the images of a group, such
as all photographs of one plant. It counts as of the class of its first image.
"""

from collections.abc import Iterator, Sequence

import numpy as np

Split = tuple[np.ndarray, np.ndarray]  # positions: to fit to, to test on


class GroupedSplits:
    """The units of some images.

    Args:
        labels (Sequence[int]): Classes of the images (N,), from 0.
        groups (Sequence, optional): The group of each image (N,).
            Defaults to None: each image is a unit.

    Raises:
        ValueError: If there is not one group for each image.
    """

    def __init__(self, labels: Sequence[int], groups: Sequence | None = None):
        self.labels = np.asarray(labels)
        groups = range(len(self.labels)) if groups is None else groups
        if len(groups) != len(self.labels):
            raise ValueError(
                f'{len(groups)} groups for {len(self.labels)} images; pass '
                'one group per image'
            )
        _, first, units = np.unique(
            np.asarray(groups), return_index=True, return_inverse=True
        )
        self._of_image = units.reshape(-1)
        self._labels = self.labels[first]
        self.per_class = np.bincount(self._labels)

    @property
    def tested(self) -> int:
        """How many are of a class with another one."""
        return int(self.per_class[self.per_class > 1].sum())

    def folds(self, folds: int, seed: int) -> Iterator[Split]:
        """Stratified folds; a class of one unit is always fitted to.

        Two units of a class are never all in one fold, as
        ``StratifiedGroupKFold`` of scikit-learn may have them.
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
        """Positions of the images of a random subset.

        The subset has ``numbers`` (K,) units of each class, or all.
        """
        order, rank = self._shuffled(seed)
        drawn = np.empty(len(order), bool)
        drawn[order] = rank < numbers[self._labels[order]]
        return np.where(drawn[self._of_image])[0]

    def _shuffled(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Groups by class, then by chance, and their rank in the class."""
        chance = np.random.default_rng(seed).permutation(len(self._labels))
        order = np.lexsort((chance, self._labels))
        starts = np.cumsum(self.per_class) - self.per_class
        return order, np.arange(len(order)) - starts[self._labels[order]]

    def _split(self, held_out: np.ndarray) -> Split:
        """Split, and leave a class that would not be fitted to as it is."""
        test = held_out[self._of_image]
        test &= np.isin(self.labels, self.labels[~test])
        return np.where(~test)[0], np.where(test)[0]
