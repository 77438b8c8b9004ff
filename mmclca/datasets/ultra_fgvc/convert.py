# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Turn a set into another layout."""

import os
import re
import shutil
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from .checks import check_split, find_missing, missing_report
from .layouts import SUFFIXES
from .lists import class_names, divide, label, read_source
from .write import Item, write_files, write_parquet


def convert(source, info, layout, folder, force=False, counts=True):
    """Write a set in another layout; the source stays as it is.

    The result grows in a hidden folder and gets its name when it is whole.

    Args:
        source (Source): Where the set is.
        info (UltraFGVCInfo): The set.
        layout (str): ``released``, ``csv``, ``folders`` or ``parquet``.
        folder (str | Path): Where the set's new folder, ``Cotton80`` and so
            on, goes.
        force (bool): Whether to replace that folder if it exists. Defaults
            to False.
        counts (bool): Whether the set must be whole. Defaults to True.

    Returns:
        Path: The new folder.

    Raises:
        ValueError: If the set is not what it must be.
        FileNotFoundError: If images are missing.
        FileExistsError: If the folder exists, or holds the source.
    """
    target = Path(folder) / info.title
    _check_target(target, source, force)
    items = _plan(source, info, layout, counts)
    with _new_folder(target) as partial:
        if layout == 'parquet':
            write_parquet(partial, items, info)
        else:
            write_files(partial, items, info, layout)
    return target


@contextmanager
def _new_folder(target):
    """Give a hidden folder, which is called ``target`` if all goes well."""
    partial = target.with_name(f'.{target.name}.partial')
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        _swap_in(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _check_target(target, source, force):
    inside = [
        root
        for _, root in source.roots
        if target.resolve() in (root.resolve(), *root.resolve().parents)
    ]
    if inside:
        raise FileExistsError(
            f'{target} holds the source ({inside[0]}); choose another folder'
        )
    if target.exists() and not force:
        raise FileExistsError(f'{target} exists; --force replaces it')


def _swap_in(partial, target):
    old = target.with_name(f'.{target.name}.replaced')
    if target.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.rename(target, old)
    os.rename(partial, target)
    shutil.rmtree(old, ignore_errors=True)


def _plan(source, info, layout, counts):
    images = read_source(source, info)
    classes = class_names(images, info)
    splits = divide(images, info)
    for split in splits if counts else ():
        check_split(images, splits, split, info, source)
    missing, empty = find_missing(images)
    if missing or empty:
        raise FileNotFoundError(missing_report(missing, empty, info, source))
    # The CSV files list all stages of SoyAgeing together.
    parts = (info,) if layout == 'csv' else info.parts
    return [
        item for part in parts for item in _part_items(images, part, classes)
    ]


def _part_items(images, part, classes):
    own = [i for i in images if not part.stages or i.stage in part.stages]
    splits = divide(own, part)
    if 'train' in splits and 'val' in splits:
        del splits['trainval']
    else:
        splits['train'] = splits.pop('trainval', [])
    items = []
    for split, listed in splits.items():
        by_path = {image.path: image for image in listed}
        for path, number in label(listed, classes):
            image = by_path[path]
            items.append(
                Item(
                    path,
                    image.class_name,
                    number,
                    split,
                    image.stage,
                    image.file_name,
                )
            )
    return _with_names(items, part)


def _with_names(items, info):
    """Keep file names that follow the set's rule; give the others one."""
    counted = Counter((item.stage, item.file_name) for item in items)
    kept = [
        counted[item.stage, item.file_name] == 1 and _is_named(item, info)
        for item in items
    ]
    taken = {
        Path(item.file_name).stem
        for item, keep in zip(items, kept, strict=True)
        if keep
    }
    return [
        item if keep else item._replace(file_name=_new_name(item, info, taken))
        for item, keep in zip(items, kept, strict=True)
    ]


def _is_named(item, info):
    match = re.match(info.class_pattern, item.file_name)
    named = match and match[1].lstrip('0') == item.class_name.lstrip('0')
    return bool(named) and item.file_name.lower().endswith(SUFFIXES)


def _new_name(item, info, taken):
    split = 'test' if item.split == 'test' else 'train'
    k = 1
    while True:
        stem = info.file_format.format(
            cls=item.class_name, stage=item.stage, k=k, split=split
        )
        if stem not in taken:
            taken.add(stem)
            return stem
        k += 1
