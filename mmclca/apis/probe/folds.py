# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How good a classifier is, told by images that it was not fitted to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.evaluation.intervals import wilson

from .classifiers import fit_linear
from .solvers import Linear
from .task import Task, best, weights_of
from .temperature import fit_temperature

MOST_SCORES = 2**25  # of all repeats together: many images need no repeats


@dataclass
class OutOfFold:
    """Class scores of images by classifiers that were not fitted to them.

    Args:
        logits (Tensor): Scores before softmax (R, N, K) of R repeats,
            divided by the temperature; NaN for images that were not tested.
        labels (Tensor): Classes of the images (N,).
        strength (float): The strength to fit the classifier with.
        temperature (float): What its scores are to be divided by.
        folds (int): How many parts the images were cut into.
        independent (int): Images that were tested, a group counted once.
    """

    logits: Tensor
    labels: Tensor
    strength: float
    temperature: float
    folds: int
    independent: int

    @property
    def accuracy(self) -> Tensor:
        """Share of the tested images that is right, of each repeat (R,)."""
        return self._right().nanmean(1)

    @property
    def macro_recall(self) -> float:
        """Mean over the tested classes of the share that is right."""
        return float(self.recalls().nanmean())

    @property
    def untested(self) -> list[int]:
        """Classes that were not tested: of one image, or one group."""
        return torch.where(self.recalls().isnan())[0].tolist()

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Wilson interval of the mean accuracy.

        It counts each image, or group, once: repeats are no more images.

        Args:
            level (float): Its level. Defaults to 0.95.
        """
        mean = float(self.accuracy.mean())
        return wilson(mean, self.independent, level)

    def recalls(self) -> Tensor:
        """Share of each class that is right (K,), NaN where not tested."""
        right = self._right().nanmean(0)
        of_class = F.one_hot(self.labels, self.logits.shape[2]).T.bool()
        return torch.stack([right[row].nanmean() for row in of_class])

    def probabilities(self) -> Tensor:
        """Mean softmax over the repeats (N, K), NaN where not tested."""
        return self.logits.softmax(2).nanmean(0)

    def _right(self) -> Tensor:
        """Whether each is right (R, N), NaN where not tested."""
        right = (self.logits.argmax(2) == self.labels).float()
        return right.masked_fill(self.logits[:, :, 0].isnan(), torch.nan)


def out_of_fold(
    features: Tensor,
    labels: Tensor | Sequence[int],
    num_classes: int,
    classifier: str = 'ridge',
    groups: Sequence | None = None,
    folds: int = 5,
    repeats: int = 5,
    seed: int = 0,
    class_weights: str | None = None,
    progress: Callable = iter,
) -> OutOfFold:
    """Test a classifier by repeated stratified folds.

    The accuracy is a little below that of the classifier of all images, for
    each fold is fitted to a part: with three images a class, to two of each.
    The strength for each fold was chosen by folds of the other images alone.
    The strength for all images is chosen by these folds; the temperature is
    the one at which their scores are likeliest.

    Args:
        features (Tensor): (N, D).
        labels (Tensor | Sequence[int]): Their classes (N,), from 0.
        num_classes (int): Number of classes K.
        classifier (str): A key of ``CLASSIFIERS``. Defaults to 'ridge'.
        groups (Sequence, optional): What each image shows (N,), such as the
            number of the plant; one group is in one fold. Defaults to None:
            each another one.
        folds (int): Into how many parts to cut the images, fewer where no
            class has so many. Defaults to 5.
        repeats (int): How often, fewer where images times classes are
            millions. Defaults to 5.
        seed (int): Of the cuts. Defaults to 0.
        class_weights (str, optional): 'balanced' for classes that count
            alike whatever their number of images. Defaults to None: images
            count alike.
        progress (Callable): Wraps the list of all folds, such as
            ``mmpretrain.utils.track``. Defaults to ``iter``.

    Returns:
        OutOfFold: Where no class has two images, or two groups, nothing in
        it is tested, and strength and temperature are defaults.

    Raises:
        ValueError: If there is no such classifier, a class has no image, or
            there is not one group for each image.
    """
    task = Task.of(
        features, labels, num_classes, classifier, groups, class_weights
    )
    labels = task.labels
    allowed = MOST_SCORES // (len(labels) * num_classes)
    repeats = max(1, min(repeats, allowed))
    cuts = [
        (repeat, *split)
        for repeat in range(repeats)
        for split in task.units.folds(folds, seed + repeat)
    ]
    logits = torch.full((repeats, len(labels), num_classes), torch.nan)
    right = torch.full((len(task.strengths), *logits.shape[:2]), torch.nan)
    for repeat, train, test in progress(cuts):
        scores = task.scores(train, test)
        right[:, repeat, test] = task.right(scores, test)
        chosen = task.part(train).choose(folds, seed)
        logits[repeat, test] = scores[chosen].float()
    strength = task.strengths[best(right.nanmean(1))]
    tested = task.units.tested
    known = logits if tested else task.fit(strength)[0].scores(task.features)
    temperature = fit_temperature(known, labels, tested)
    parts = len(cuts) // repeats
    return OutOfFold(
        logits / temperature, labels, strength, temperature, parts, tested
    )


def fit_chosen(
    features: Tensor,
    labels: Tensor,
    num_classes: int,
    classifier: str,
    *,
    class_weights: str | None = None,
    **folds,
) -> tuple[OutOfFold, Linear]:
    """Fit a classifier with the strength that folds of the images choose.

    Args:
        features (Tensor): (N, D).
        labels (Tensor): Classes of the images (N,), from 0.
        num_classes (int): Number of classes.
        classifier (str): See :func:`out_of_fold`, as all that follow.
        class_weights (str, optional): See there. Defaults to None.
        **folds: ``groups``, ``folds``, ``repeats``, ``progress``.

    Returns:
        tuple[OutOfFold, Linear]: What the folds tell, its
        temperature among it, and the classifier of all images, whose scores
        are not yet divided by that.

    Raises:
        ValueError: See :func:`out_of_fold`.
    """
    settings = features, labels, num_classes, classifier
    found = out_of_fold(*settings, class_weights=class_weights, **folds)
    weights = weights_of(labels, num_classes, class_weights)
    return found, fit_linear(*settings, found.strength, weights)
