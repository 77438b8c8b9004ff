# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What is checked before the first image is read."""

import os
from collections import defaultdict

from ..parquet_backend import PREFIX, ParquetFooter
from .lists import all_numbers

# Above this, one row group a loader worker is worth a word.
LARGE_ROW_GROUP = 64 << 20


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


def find_missing(images):
    """Find files that are absent or have no bytes, without opening them.

    A folder is listed once, which is fast for many thousand files, on network
    file systems too. Rows of parquet files are not looked at.

    Args:
        images (Iterable[LeafImage]): What to look for.

    Returns:
        tuple[list[str], list[str]]: Paths absent, and paths without bytes.
    """
    folders = defaultdict(list)
    for image in images:
        if not image.path.startswith(PREFIX):
            folder, name = os.path.split(image.path)
            folders[folder].append(name)
    missing, empty = [], []
    for folder, names in folders.items():
        sizes = _sizes(folder, set(names))
        paths = [(os.path.join(folder, name), name) for name in names]
        missing += [path for path, name in paths if name not in sizes]
        empty += [path for path, name in paths if sizes.get(name) == 0]
    return missing, empty


def _sizes(folder, names):
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    with entries:
        return {
            entry.name: entry.stat().st_size
            for entry in entries
            if entry.name in names and entry.is_file()
        }


def missing_report(missing, empty, info, source):
    """Put all absent and empty files into one message.

    Args:
        missing (list[str]): Paths of absent files.
        empty (list[str]): Paths of files without bytes.
        info (UltraFGVCInfo): The set.
        source (Source): Where it was found.

    Returns:
        str: A message of a few lines.
    """
    lines = [f'{info.title} in {source} cannot be used:']
    for paths, what in ((missing, 'are missing'), (empty, 'are empty')):
        if paths:
            folders = sorted({os.path.dirname(path) for path in paths})
            names = ', '.join(os.path.basename(path) for path in paths[:5])
            more = ', ...' if len(paths) > 5 else ''
            lines += [
                f'  {len(paths)} images {what}: {names}{more}',
                f'    looked in {", ".join(folders[:5])}',
            ]
    lines.append(
        'All of them: python tools/dataset_converters/ultra_fgvc.py check '
        f'{source.roots[0][1]} --dataset {info.name} --report bad.csv'
    )
    return '\n'.join(lines)


def find_notes(images, classes, source):
    """Find what a user had better know about a set that is in order.

    Args:
        images (list[LeafImage]): All its images.
        classes (tuple[str]): Its classes.
        source (Source): Where it was found.

    Returns:
        list[str]: Sentences; often none.
    """
    notes = []
    if _numbered_otherwise(images, classes):
        notes.append(
            f'{source}: its labels count the classes in another order. '
            'Labels here follow the class names, the same in every layout.'
        )
    if source.layout == 'parquet':
        notes += [
            note
            for part, root in source.roots
            for note in _parquet_notes(root, part)
        ]
    return notes


def _numbered_otherwise(images, classes):
    given = {image.class_name: image.given for image in images}
    if not all_numbers(given.values()):
        return False
    labels = {name: i for i, name in enumerate(classes)}
    return len({int(given[name]) - labels[name] for name in given}) > 1


def _parquet_notes(path, info):
    """Tell of a parquet file what its footer shows."""
    file = ParquetFooter(path)
    notes = []
    if file.num_null:
        notes.append(
            f'{path}: {file.num_null} rows hold no image. Which: python '
            f'tools/dataset_converters/ultra_fgvc.py check {path} '
            f'--dataset {info.name}'
        )
    if file.largest_row_group > LARGE_ROW_GROUP:
        notes.append(
            f'{path} has row groups of up to {file.largest_row_group >> 20} '
            'MB, and each worker of a data loader keeps one in memory. To '
            'rewrite the file once with small ones: python '
            f'tools/dataset_converters/ultra_fgvc.py convert {path} '
            f'--dataset {info.name} --layout parquet --to FOLDER'
        )
    return notes
