# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What more photographs are worth."""

from collections.abc import Callable, Sequence

import numpy as np
from torch import Tensor

from mmclca.evaluation.intervals import wilson

from .classifiers import default_strength
from .task import Task

SIZES = (1, 2, 3, 5, 10, 20, 50, 100)


def learning_curve(
    features: Tensor,
    labels: Tensor | Sequence[int],
    num_classes: int,
    classifier: str = 'ridge',
    groups: Sequence | None = None,
    sizes: Sequence[int] = SIZES,
    repeats: int = 10,
    seed: int = 0,
    strength: float | None = None,
    progress: Callable = iter,
) -> list[dict]:
    """Accuracy of a classifier fitted to k images of each class.

    Drawn anew each time; the images left are the test. It ends with the
    largest k of which half of the classes have more.

    Args:
        features (Tensor): (N, D).
        labels (Tensor | Sequence[int]): Their classes (N,), from 0.
        num_classes (int): Number of classes.
        classifier (str): A key of ``CLASSIFIERS``. Defaults to 'ridge'.
        groups (Sequence, optional): See :func:`out_of_fold`; k groups of
            each class are drawn. Defaults to None.
        sizes (Sequence[int]): Images a class, k. A class with fewer has all
            of them fitted. Defaults to 1, 2, 3, 5, 10, 20, 50 and 100.
        repeats (int): Draws of each size. Defaults to 10.
        seed (int): Of the draws. Defaults to 0.
        strength (float, optional): See :func:`fit_linear`.
            Defaults to None.
        progress (Callable): Wraps the list of all draws. Defaults to
            ``iter``.

    Returns:
        list[dict]: For each size ``photographs`` (k), the mean ``accuracy``
        and its 95 % Wilson interval, ``low`` to ``high``. Empty where most
        classes have one image.

    Raises:
        ValueError: See :func:`out_of_fold`.
    """
    task = Task.of(features, labels, num_classes, classifier, groups, None)
    if strength is None:
        strength = default_strength(classifier)
    most = np.median(task.units.per_class) - 1
    draws = [
        (size, seed + repeat)
        for size in sizes
        if size <= most
        for repeat in range(repeats)
    ]
    shares = {}
    for size, one in progress(draws):
        share = _share_right(task, strength, *task.units.draw(size, one))
        shares.setdefault(size, []).append(share)
    counts = task.units.per_class
    return [
        _point(size, np.mean(found), counts[counts > size].sum())
        for size, found in shares.items()
    ]


def _share_right(task: Task, strength: float, train, test) -> float:
    (fitted,) = task.part(train).fit(strength)
    named = fitted.scores(task.features[test]).argmax(1)
    return float((named == task.labels[test]).float().mean())


def _point(size, accuracy, number) -> dict:
    low, high = wilson(float(accuracy), int(number))
    return dict(photographs=size, accuracy=float(accuracy), low=low, high=high)
