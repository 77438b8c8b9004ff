# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Image lists and class lists in mmpretrain's format."""

import os
import zlib
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from mmclca.errors import Error
from mmclca.utils.files import read_lines, replacing
from mmclca.utils.messages import check_integer

from .labeled_images import SPLITS, LabeledImages

ALL = range(10**9)  # valid labels of a list without class names


def read_labels(
    file: str | os.PathLike,
    classes: Sequence[str] | None = None,
    optional: bool = False,
) -> list[tuple[str, int | None]]:
    """Read lines "path label" of a file.

    Without ``classes``, any label is valid. With ``optional``, a line may be
    a path without a label (None).

    Raises:
        Error: Names the first lines without a valid label.
    """
    rows, wrong = [], []
    lines = enumerate(map(str.strip, read_lines(file)), 1)
    for number, line in (pair for pair in lines if pair[1]):
        path, label = line, None
        words = line.rsplit(maxsplit=1)
        if len(words) == 2 and words[1].isdecimal():
            path, label = words[0], int(words[1])
        is_valid = optional if label is None else label < len(classes or ALL)
        if not is_valid:
            wrong.append(f'\n  {number}: {line}')
        rows.append((path, label))
    if wrong:
        end = f' to {len(classes) - 1}' if classes else ''
        raise Error(
            f'{file}: expected lines "path label", with labels from 0{end}; '
            f'{len(wrong)} lines differ:{"".join(wrong[:10])}'
        )
    return rows


def read_lists(folder: Path, lists: dict[str, str]) -> LabeledImages:
    """Read ``classes.txt`` and a list per split from a folder.

    Paths are relative to the folder. An image in several lists belongs to the
    first one.

    Raises:
        Error: Names the lines without a valid label.
    """
    classes = read_lines(folder / 'classes.txt')
    rows = {}
    for split, name in lists.items():
        for path, label in read_labels(folder / name, classes):
            rows.setdefault(str(folder / path), (label, split))
    labels, splits = ([row[i] for row in rows.values()] for i in (0, 1))
    return LabeledImages([*rows], labels, classes, None, splits, str(folder))


def format_lists(
    photos: LabeledImages,
    folder: Path,
    names: Iterable[str] = (),
    relative: bool = True,
) -> dict[Path, list[str]]:
    """Return the lines for ``classes.txt`` and for a list per split, by file.

    Images without a split belong to ``train.txt``. Lists in ``names`` are
    included even if empty; ``relative`` paths start at the folder.
    """
    lists = dict(classes=photos.classes, **{name: [] for name in names})
    rows = zip(photos.splits, photos.paths, photos.labels, strict=True)
    for split, path, label in rows:
        if relative:  # slashes on Windows, too
            path = os.path.relpath(path, folder).replace(os.sep, '/')
        # readers strip lines
        path = path if path == path.lstrip() else os.path.join('.', path)
        lists.setdefault(split or 'train', []).append(f'{path} {label}')
    return {folder / f'{name}.txt': lines for name, lines in lists.items()}


def write_lists(
    lists: dict[Path, list[str]],
    refusal: str = '',
    old: Iterable[Path] = (),
    force: bool = False,
) -> None:
    """Write lists, and delete further ``old`` lists.

    Raises:
        Error: If a file exists and differs, unless ``force``; then
            nothing is written.
    """
    texts = {
        file: ''.join(f'{line}\n' for line in lines)
        for file, lines in lists.items()
    }
    differ = [
        file
        for file in dict.fromkeys([*texts, *old])
        if file.exists() and file.read_text('utf-8') != texts.get(file)
    ]
    if differ and not force:
        raise Error(f'{", ".join(map(str, differ))}: {refusal}')
    with ExitStack() as written:  # splits of two calls share images
        for file, content in texts.items():
            written.enter_context(replacing(file)).write_text(content, 'utf-8')
    for file in set(differ) - texts.keys():
        file.unlink()


def split_sizes(
    count: int, val_fraction: float, test_fraction: float = 0.0
) -> tuple[int, int, int]:
    """Return the training, validation and test image counts of a class.

    Each requested split gets at least one image if possible: training first,
    then validation, then test.

    Raises:
        Error: If a fraction is out of range.
    """
    total = val_fraction + test_fraction
    if val_fraction <= 0 or test_fraction < 0 or total >= 1:
        raise Error(
            f'val fraction {val_fraction}, test fraction {test_fraction}: '
            'expected val above 0, test 0 or more, and their sum below 1'
        )
    spare = max(count - 1, 0)
    for_test = min(spare - 1, 1) if test_fraction and spare else 0
    val = min(max(round(count * val_fraction), 1), spare - for_test)
    test = min(max(round(count * test_fraction), for_test), spare - val)
    return count - val - test, val, test


def split_photos(
    photos: LabeledImages, val_fraction: float, test_fraction: float, seed: int
) -> LabeledImages:
    """Split each class at random, independently of the other classes."""
    labels = np.array(photos.labels)
    splits = np.full(len(labels), 'train')
    for label, name in enumerate(photos.classes):
        positions = np.flatnonzero(labels == label)
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        sizes = split_sizes(len(positions), val_fraction, test_fraction)
        splits[positions] = rng.permutation(np.repeat(SPLITS, sizes))
    return replace(photos, splits=splits.tolist())


def hold_out_classes(
    photos: LabeledImages, number: int, seed: int
) -> tuple[LabeledImages, LabeledImages]:
    """Hold out randomly selected classes; return remaining, held-out images.

    Raises:
        Error: If fewer than two classes would remain.
    """
    num_classes = len(photos.classes)
    check_integer(1, num_classes - 2, num=number)
    rng = np.random.default_rng(seed)
    drawn = sorted(rng.choice(num_classes, number, replace=False).tolist())
    left = [label for label in range(num_classes) if label not in drawn]
    return photos.select_classes(left), photos.select_classes(drawn)
