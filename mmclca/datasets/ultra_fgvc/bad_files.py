# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""All images of a list that cannot be read, found before the first is."""

import os
import shlex
from collections import defaultdict
from io import BytesIO

from ..image_files import EMPTY, MISSING, glance, glance_at_files
from ..parquet import PREFIX, iter_images, parquet_uri, split_uri

_SHOWN = 5


def check_files(images, info, source):
    """Look for images that are missing, empty, cut short or no images.

    Each is looked at as :func:`~mmclca.datasets.image_files.glance` does,
    which decodes none that is in order. Files are opened in several threads;
    a parquet file is read through once.

    Args:
        images (Sequence[LeafImage]): What to look at.
        info (UltraFGVCInfo): The set.
        source (Source): Where it was found.

    Raises:
        FileNotFoundError: Naming all bad images, if some are missing.
        ValueError: Naming all bad images, if none is missing.
    """
    problems = find_problems([image.path for image in images])
    if problems:
        absent = MISSING in problems.values()
        error = FileNotFoundError if absent else ValueError
        raise error(_report(problems, info, source))


def find_problems(paths):
    """Look at many images.

    Args:
        paths (Sequence[str]): Files and addresses in parquet files.

    Returns:
        dict[str, str]: What is wrong with each bad one.
    """
    files = [path for path in paths if not path.startswith(PREFIX)]
    found = dict(zip(files, glance_at_files(files), strict=True))
    rows = defaultdict(list)
    for path in paths:
        if path.startswith(PREFIX):
            file, row = split_uri(path)
            rows[file].append(row)
    for file, own in rows.items():
        for row, content in iter_images(file, own):
            found[parquet_uri(file, row)] = (
                MISSING if content is None else glance(BytesIO(content))
            )
    return {path: found[path] for path in paths if found[path]}


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
