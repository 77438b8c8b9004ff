# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Whether the lists and images of a set are what they must be."""

import os
import shlex
from collections import defaultdict

from ..image_files import EMPTY, MISSING, check_headers
from ..parquet import PREFIX
from .lists import all_numbers

_SHOWN = 5


def check_split(images, splits, wanted, info, source, counts=True):
    """Compare a split with what the set must have.

    Args:
        images (list[LeafImage]): All images found.
        splits (dict): What :func:`divide` returns.
        wanted (str): The split asked for.
        info (UltraFGVCInfo): The set.
        source (Source): Where it was found.
        counts (bool): Whether classes and images are counted, beside that
            there are some. Defaults to True.

    Raises:
        ValueError: Saying what was found and what was expected.
    """
    found = {split: len(listed) for split, listed in splits.items()}
    num_classes = len({image.class_name for image in images})
    wrong = num_classes != info.num_classes or (
        found.get(wanted) != info.counts.get(wanted, found.get(wanted))
    )
    if wanted in found and not (counts and wrong):
        return
    raise ValueError(
        f'{info.title}, split {wanted!r}, in {source} is not what it must '
        f'be.\n  found    {num_classes} classes, images: {_listing(found)}\n'
        f'  expected {info.num_classes} classes, images: '
        f'{_listing(info.counts)}\n' + _advice(wanted, found)
    )


def _advice(wanted, found):
    if wanted not in found:
        if not found:
            return 'No image belongs to it.'
        return (
            f'The lists here do not tell which images are {wanted!r}; '
            f'split may be {", ".join(found)}.'
        )
    return (
        'To use a part of the set: check_counts=False in a config, '
        '--partial for convert.'
    )


def _listing(counts):
    return ', '.join(f'{split} {n}' for split, n in counts.items())


def check_images(images, info, source):
    """Look for images that are missing, empty, cut short or no images.

    Each is looked at as :func:`~mmclca.datasets.image_files.check_header`
    does, which decodes none that looks whole.

    Args:
        images (Sequence[LeafImage]): What to look at.
        info (UltraFGVCInfo): The set.
        source (Source): Where it was found.

    Raises:
        FileNotFoundError: Naming all bad images, if some are missing.
        ValueError: Naming all bad images, if none is missing.
    """
    problems = check_headers([image.path for image in images])
    if problems:
        absent = MISSING in problems.values()
        error = FileNotFoundError if absent else ValueError
        raise error(_report(problems, info, source))


def _report(problems, info, source):
    paths = defaultdict(list)
    for path, reason in problems.items():
        kind = reason if reason in (MISSING, EMPTY) else 'unreadable'
        paths[kind].append(path)
    broken = [f'{_name(p)}: {problems[p]}' for p in paths['unreadable']]
    folders = sorted({os.path.dirname(path) for path in problems})
    place = os.path.commonpath([root for _, root in source.roots]) or '.'
    return (
        f'{info.title} in {source} cannot be used:\n'
        + _line('are missing: ', map(_name, paths[MISSING]))
        + _line('are empty: ', map(_name, paths[EMPTY]))
        + _line('cannot be read:\n    ', broken, '\n    ')
        + f'  looked in {_first(folders)}\n'
        'All of them: python tools/dataset_converters/ultra_fgvc.py check '
        f'{shlex.quote(place)} --dataset {info.name} --report bad.csv'
    )


def _line(what, names, separator=', '):
    names = list(names)
    if not names:
        return ''
    return f'  {len(names)} images {what}{_first(names, separator)}\n'


def _first(names, separator=', '):
    more = ['...'] * (len(names) > _SHOWN)
    return separator.join([*names[:_SHOWN], *more])


def _name(path):
    # A row says little without its file.
    parts = 2 if path.startswith(PREFIX) else 1
    return '/'.join(path.split('/')[-parts:])


def is_ordered_differently(images, classes):
    """Tell whether a set's own labels count the classes in another order.

    Returns:
        bool: Whether they do, beyond where they begin.
    """
    given = {image.class_name: image.given for image in images}
    if not all_numbers(given.values()):
        return False
    labels = {name: i for i, name in enumerate(classes)}
    return len({int(given[name]) - labels[name] for name in given}) > 1
