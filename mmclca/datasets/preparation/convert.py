# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Turn a set into another layout."""

import os
import re
import shutil
from collections import Counter
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from mmclca.utils.known_names import not_one_of

from ..image_files import IMAGE_SUFFIXES
from ..ultra_fgvc.checks import check_images, check_split
from ..ultra_fgvc.folders import READERS
from ..ultra_fgvc.lists import class_names, divide, label, of_part, read_source
from .write import write_files, write_parquet


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
        ValueError: If the set is not what it must be, or images are
            unreadable.
        FileNotFoundError: If images are missing.
        FileExistsError: If the folder exists, or holds the source.
    """
    if layout not in READERS:
        raise ValueError(f'layout: {not_one_of(layout, READERS)}')
    target = Path(folder) / info.title
    _check_target(target, source, force)
    images = _plan(source, info, layout, counts)
    with _new_folder(target) as partial:
        if layout == 'parquet':
            write_parquet(partial, images, info)
        else:
            write_files(partial, images, info, layout)
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
    for _, root in source.roots:
        if root.resolve().is_relative_to(target.resolve()):
            raise FileExistsError(
                f'{target} holds the source ({root}); choose another folder'
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
    """List the images as they are to be written."""
    images = read_source(source, info)
    classes = class_names(images, info)
    splits = divide(images, info)
    for split in splits if counts else ():
        check_split(images, splits, split, info, source)
    check_images(images, info, source)
    # The CSV files list all stages of SoyAgeing together.
    parts = (info,) if layout == 'csv' else info.parts
    return [
        image
        for part in parts
        for image in _with_names(_part(images, part, classes), part)
    ]


def _part(images, part, classes):
    splits = divide(of_part(images, part), part)
    if 'train' in splits and 'val' in splits:
        del splits['trainval']
    else:
        splits['train'] = splits.pop('trainval', [])
    return [
        image._replace(split=split)
        for split, listed in splits.items()
        for image in label(listed, classes)
    ]


def _with_names(images, info):
    """Keep file names that follow the set's rule; give the others one."""
    counted = Counter((i.stage, i.file_name) for i in images)
    kept = {
        (image.stage, image.file_name)
        for image in images
        if counted[image.stage, image.file_name] == 1
        and _is_named(image, info)
    }
    taken = {Path(name).stem for _, name in kept}
    return [
        image
        if (image.stage, image.file_name) in kept
        else image._replace(file_name=_new_name(image, info, taken))
        for image in images
    ]


def _is_named(image, info):
    match = re.match(info.class_pattern, image.file_name)
    named = match and match[1].lstrip('0') == image.class_name.lstrip('0')
    return bool(named) and image.file_name.lower().endswith(IMAGE_SUFFIXES)


def _new_name(image, info, taken):
    split = 'test' if image.split == 'test' else 'train'
    names = (
        info.file_format.format(
            cls=image.class_name, stage=image.stage, k=k, split=split
        )
        for k in count(1)
    )
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name
