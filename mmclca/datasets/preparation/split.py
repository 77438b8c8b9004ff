# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Split images, a folder a class, into training, validation and test."""

import os
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

from ..image_files import IMAGE_SUFFIXES, find_problem
from .progress import track

SPLITS = ('train', 'val', 'test')


def check_fractions(val_fraction, test_fraction):
    """Check the shares of a class that are kept for validation and test.

    Args:
        val_fraction (float): Share for validation, above 0.
        test_fraction (float): Share for the test, 0 for none.

    Raises:
        ValueError: If a share is out of range, or nothing is left to train.
    """
    total = val_fraction + test_fraction
    if val_fraction <= 0 or test_fraction < 0 or total >= 1:
        raise ValueError(
            f'val fraction {val_fraction} and test fraction {test_fraction}: '
            'the first must be above 0, the second 0 or more, and their sum '
            'below 1'
        )


def split_sizes(count, val_fraction, test_fraction=0.0):
    """Share out the images of one class.

    Each part that is asked for gets at least one image while there are
    enough: training first, then validation, then test.

    Args:
        count (int): Images of the class.
        val_fraction (float): Share for validation.
        test_fraction (float): Share for the test. Defaults to 0.

    Returns:
        tuple[int, int, int]: Images for training, validation and test.
    """
    spare = max(count - 1, 0)
    for_test = min(spare - 1, 1) if test_fraction and spare else 0
    val = min(max(round(count * val_fraction), 1), spare - for_test)
    test = min(max(round(count * test_fraction), for_test), spare - val)
    return count - val - test, val, test


def find_classes(folder):
    """Find the images of each class.

    Links are followed, hidden files left out.

    Args:
        folder (Path): Has a folder a class.

    Returns:
        tuple[dict[str, list[Path]], Counter]: Images by class, both sorted by
        name, and how many files of which kind are left aside.

    Raises:
        ValueError: If there are not at least two classes with images.
    """
    if not folder.is_dir():
        raise ValueError(f'{folder} is not a folder')
    classes, ignored = {}, Counter()
    for file in _walk(folder):
        name, *deeper = file.relative_to(folder).parts
        suffix = file.suffix.lower()
        if not deeper:
            ignored['beside the class folders'] += suffix in IMAGE_SUFFIXES
        elif suffix in IMAGE_SUFFIXES:
            classes.setdefault(name, []).append(file)
        else:
            ignored[f'ending in {suffix or "nothing"}'] += 1
    if len(classes) < 2:
        raise ValueError(
            f'{folder} holds {len(classes)} folders with images; at least 2, '
            f'one a class, are needed ({folder}/aurora/IMG_1.jpg and so on), '
            f'with images ending in {IMAGE_SUFFIXES}'
        )
    return dict(sorted(classes.items())), +ignored


def _walk(folder):
    for place, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(f for f in folders if not f.startswith('.'))
        for name in sorted(files):
            if not name.startswith('.'):
                yield Path(place, name)


def open_images(classes, jobs):
    """Open all images.

    Args:
        classes (dict[str, list[Path]]): Images by class.
        jobs (int): Processes that open images.

    Returns:
        dict[Path, str]: What is wrong with each that cannot be read.
    """
    files = [file for group in classes.values() for file in group]
    problems = zip(files, track(find_problem, files, jobs), strict=True)
    return {file: problem for file, problem in problems if problem}


def without(classes, files):
    """Leave files out, and classes that have no others.

    Args:
        classes (dict[str, list[Path]]): Images by class.
        files (Container[Path]): What to leave out.

    Returns:
        dict[str, list[Path]]: The others, by class.
    """
    rest = {
        name: [file for file in group if file not in files]
        for name, group in classes.items()
    }
    return {name: group for name, group in rest.items() if group}


def split(classes, val_fraction, test_fraction, seed):
    """Split each class at random, on its own.

    A class keeps its split when others come or go.

    Args:
        classes (dict[str, list[Path]]): Images by class.
        val_fraction (float): Share for validation.
        test_fraction (float): Share for the test.
        seed (int): Seed of the choice.

    Returns:
        dict[str, list[tuple[Path, int]]]: Images and labels by split.
    """
    lists = {name: [] for name in SPLITS}
    for label, (name, files) in enumerate(classes.items()):
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        sizes = split_sizes(len(files), val_fraction, test_fraction)
        order = rng.permutation(np.repeat(SPLITS, sizes))
        for file, part in zip(files, order, strict=True):
            lists[str(part)].append((file, label))
    return lists
