# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A probe of images with classes."""

from collections.abc import Sequence

from ..labelled_images import LabelledImages
from ..threshold_choice import accuracy, check_known, shared
from .folds import OutOfFold
from .probe import Probe


def fit_to_images(
    probe: Probe,
    images: LabelledImages,
    groups: Sequence | None = None,
    **options,
) -> tuple[LabelledImages, int, OutOfFold]:
    """Fit a probe to images; give those read, their channels, the folds.

    Args:
        probe (Probe): The probe.
        images (LabelledImages): Images, each with a class.
        groups (Sequence, optional): The group of each. Defaults to None.
        **options: Of :meth:`Probe.fit`.
    """
    features, unread = probe.features(images.paths)
    read = [i for i in range(len(images.paths)) if i not in unread]
    groups = groups and [groups[i] for i in read]
    images = images.without(unread)
    if None in images.names:
        nameless = images.paths[images.names.index(None)]
        raise ValueError(
            f'{nameless} has no class: give a folder a class, or a list with '
            'labels'
        )
    classes = images.classes
    labels = [classes.index(name) for name in images.names]
    found = probe.fit(features, labels, classes, groups=groups, **options)
    return images, features.shape[1], found


def accuracy_on(
    probe: Probe, images: LabelledImages, fitted: LabelledImages
) -> tuple[int, float]:
    """Tell the number of new images that are read, and the accuracy on them.

    Args:
        probe (Probe): The probe.
        images (LabelledImages): Images with classes.
        fitted (LabelledImages): Those that it was fitted to.
    """
    check_known(images, probe.classes)
    both = shared(images, fitted)
    if both:
        raise ValueError(
            f'{len(both)} of the test images are also fitted to, such as '
            f'{min(both)}: they tell nothing'
        )
    features, unread = probe.features(images.paths)
    images = images.without(unread)
    right = accuracy(images, probe.scores(features), probe.classes)
    if right is None:
        raise ValueError(f'{images.source} has no classes to measure with')
    return len(images.paths), right
