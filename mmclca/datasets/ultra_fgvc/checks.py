# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Whether the lists and images of a set are what they must be."""

import os
import shlex

from ..image_files import MISSING, check_headers
from .places import TOOL

_SHOWN = 5


def check_split(splits, wanted, info, found, counts=True):
    """Compare a split with what the set must have.

    Without ``counts`` it is enough that the split is there.

    Raises:
        ValueError: Saying what was found and what was expected.
    """
    numbers = {split: len(listed) for split, listed in splits.items()}
    if wanted not in splits:
        raise ValueError(
            f'{info.title}: the lists in {found} do not tell which images '
            f'are {wanted!r}; split may be {", ".join(splits) or "none"}'
        )
    num_classes = len({image.class_name for image in found.images})
    expected = info.counts.get(wanted, numbers[wanted])
    if counts and (num_classes, numbers[wanted]) != (
        info.num_classes,
        expected,
    ):
        raise ValueError(
            f'{info.title}, split {wanted!r}, in {found} is not what it must '
            f'be.\n  found    {num_classes} classes, images: '
            f'{_listing(numbers)}\n  expected {info.num_classes} classes, '
            f'images: {_listing(info.counts)}\nTo use a part of the set: '
            'check_counts=False in a config, --partial for import.'
        )


def _listing(counts):
    return ', '.join(f'{split} {n}' for split, n in counts.items())


def check_images(images, info, found):
    """Look for images that are missing, empty, cut short or no images.

    Each is looked at as :func:`~mmclca.datasets.image_files.check_header`
    does, which decodes none that looks whole.

    Raises:
        FileNotFoundError: If some are missing, counting all bad images.
        ValueError: If none is missing, but some are bad.
    """
    problems = check_headers([image.path for image in images])
    place = shlex.quote(os.path.commonpath(found.places))
    command = f'{TOOL} check {place} --dataset {info.name}'
    refuse_bad(problems, info, f'\nAll of them: {command}', _SHOWN)


def refuse_bad(problems, info, advice='', most=None):
    """Raise the error of bad images, by path what is wrong with each.

    Raises:
        FileNotFoundError: If some are missing.
        ValueError: If none is missing.
    """
    if not problems:
        return
    lines = [f'\n  {path}: {why}' for path, why in problems.items()]
    more = ['\n  ...'] * (len(lines) > len(lines[:most]))
    missing = [*problems.values()].count(MISSING)
    error = FileNotFoundError if missing else ValueError
    raise error(
        f'{info.title}: {len(problems)} images cannot be read, '
        f'{missing} of them missing:{"".join(lines[:most] + more)}{advice}'
    )
