# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A probe of images with classes."""

from mmclca.datasets.photographs import Photographs

from ..features import read_ones
from ..threshold_choice import check_known, share_right, shared
from .folds import OutOfFold
from .probe import Probe


def fit_to_images(
    probe: Probe, images: Photographs, **options
) -> tuple[Photographs, int, OutOfFold]:
    """Fit a probe to images; give those read, their channels, the folds.

    Args:
        probe (Probe): The probe.
        images (Photographs): Images, each with a class.
        **options: Of :meth:`Probe.fit`.
    """
    features, unread = probe.features(images.paths)
    images = read_ones(images, unread)
    if None in images.labels:
        nameless = images.paths[images.labels.index(None)]
        raise ValueError(
            f'{nameless} has no class: give a folder a class, or a list with '
            'labels'
        )
    images = images.of_classes(sorted({*images.labels}))
    found = probe.fit(
        features,
        images.labels,
        images.classes,
        groups=images.groups,
        **options,
    )
    return images, features.shape[1], found


def accuracy_on(
    probe: Probe, images: Photographs, fitted: Photographs
) -> tuple[int, float]:
    """Tell the number of new images that are read, and the share named right.

    Args:
        probe (Probe): The probe.
        images (Photographs): Images with classes.
        fitted (Photographs): Those that it was fitted to.
    """
    check_known(images, probe.classes)
    both = shared(images, fitted)
    if both:
        raise ValueError(
            f'{len(both)} of the test images are also fitted to, such as '
            f'{min(both)}: they tell nothing'
        )
    features, unread = probe.features(images.paths)
    images = read_ones(images, unread)
    right = share_right(images, probe.scores(features), probe.classes)
    if right is None:
        raise ValueError(f'{images.source} has no classes to measure with')
    return len(images.paths), right
