# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Readers of the forms in which people keep an Ultra-FGVC set.

==========  ==============================================================
csv         ``{train,val,train_val,test}.csv`` (class_id from 0, dir) beside
            a folder of images; SoyAgeing's paths begin with the stage
released    ``anno/{train,val,test}.txt`` (file name, label from 1) beside
            ``images/``
folders     ``train/ val/ test/``, in each one folder a class
parquet     one file with the columns image, label, class_name, split
==========  ==============================================================

A reader is a function of the place and the set's row of the table, and
returns a flat list of :class:`LeafImage`; it opens no image.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from mmclca.utils.extras import require
from mmclca.utils.files import read_bytes, read_rows

from ..image_files import IMAGE_SUFFIXES
from .info import SPLIT_WORDS, LeafImage, canonical, stage_of

_CSV_NAMES = dict(train='train', val='val', trainval='train_val', test='test')
_COLUMNS = 'image', 'label', 'class_name', 'split'
_BATCH_ROWS = 16


def read_released(root, info):
    """Read ``anno/*.txt`` and ``images/``."""
    rows = []
    for split in ('train', 'val', 'test'):
        file = root / 'anno' / f'{split}.txt'
        if file.is_file():
            lines = read_bytes(file).decode('utf-8-sig').splitlines()
            lines = [line.strip().rpartition(' ')[::2] for line in lines]
            rows += _with_numbers(lines, file, split, first_line=1)
    return _listed(root, rows, info, base=1)


def read_csv(root, info):
    """Read the CLCA authors' CSV files, of which ``csv_files`` are chosen."""
    rows = []
    for split, file in csv_files(root, info).items():
        found = read_rows(file)
        columns = [*found[0]] if found else []
        if not {'class_id', 'dir'} <= {*columns}:
            raise ValueError(
                f'{file} has the columns {columns}; expected '
                "'class_id' (from 0) and 'dir' (path of an image)"
            )
        lines = [(row['dir'], row['class_id']) for row in found]
        rows += _with_numbers(lines, file, split, first_line=2)
    return _listed(root, rows, info, base=0)


def read_folders(root, info):
    """Read ``train/ val/ test/`` with one folder a class in each."""
    rows = [
        (split, f'{folder}/{name}', folder.name)
        for split in ('train', 'val', 'test')
        for folder in subfolders(root / split)
        for name in sorted(os.listdir(folder))
        if name.lower().endswith(IMAGE_SUFFIXES)
    ]
    return _images(rows, info)


def read_parquet(path, info):
    """Read the rows of a parquet file, but not its images.

    The path of an image is that of the file and the number of its row. Beside
    the columns of the mirror, ``file_name`` is read where there is one.
    """
    file = open_parquet(path)
    names = file.schema_arrow.names
    missing = {*_COLUMNS} - {*names}
    if missing:
        raise ValueError(
            f'{path} has the columns {", ".join(names)}; '
            f'{", ".join(sorted(missing))} not found'
        )
    columns = {*_COLUMNS[1:], 'file_name'}.intersection(names)
    rows = file.read(columns=[*columns], use_threads=False).to_pylist()
    unknown = {row['split'] for row in rows} - SPLIT_WORDS.keys()
    if unknown:
        raise ValueError(
            f'{path}: the column split has {sorted(map(str, unknown))}; '
            f'expected {", ".join(SPLIT_WORDS)}'
        )
    return [
        LeafImage(
            f'{path}/{i}',
            row.get('file_name', str(i)),
            canonical(str(row['class_name'])),
            str(row['label']),
            SPLIT_WORDS[row['split']],
            stage_of(row.get('file_name', ''), info),
        )
        for i, row in enumerate(rows)
    ]


READERS = dict(
    csv=read_csv,
    released=read_released,
    folders=read_folders,
    parquet=read_parquet,
)


def open_parquet(path):
    """Open a parquet file, of which the end is read.

    Raises:
        ImportError: Without pyarrow.
        ValueError: If it is no parquet file, or only a part of one.
    """
    require('pyarrow', extra='parquet')
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(path, memory_map=True, pre_buffer=False)
    except ValueError as error:  # ArrowInvalid
        raise ValueError(
            f'{path} is no parquet file, or a part of one: {error}'
        ) from error


def parquet_images(path) -> Iterator[tuple[str, bytes | None]]:
    """Yield paths and encoded images of a parquet file, a few in memory.

    Raises:
        ValueError: If the file is damaged.
    """
    options = dict(columns=['image'], use_threads=False)
    batches = open_parquet(path).iter_batches(_BATCH_ROWS, **options)
    row = 0
    try:
        for batch in batches:
            for image in batch['image'].to_pylist():
                # the ``datasets`` library writes a struct {bytes, path}
                image = image['bytes'] if isinstance(image, dict) else image
                if isinstance(image, str):  # would be opened as a file
                    raise ValueError('a text stands for an image')
                yield f'{path}/{row}', image
                row += 1
    except (OSError, ValueError) as error:  # what pyarrow raises
        raise ValueError(
            f'{path} is damaged from row {row} on: {error}'
        ) from error


def csv_files(root, info):
    """Choose the CSV file of each split; none where there is none.

    For a stage of SoyAgeing, ``train_R1.csv`` comes before ``train.csv``.
    ``train_val.csv`` is the sum of ``train.csv`` and ``val.csv``, and stands
    for them where one is absent.
    """
    endings = [f'_{s}.csv' for s in info.stages if len(info.stages) == 1]
    for ending in (*endings, '.csv'):
        files = {
            split: root / f'{name}{ending}'
            for split, name in _CSV_NAMES.items()
            if (root / f'{name}{ending}').is_file()
        }
        if files:
            divided = {'train', 'val'} <= files.keys()
            unused = ('trainval',) if divided else ('train', 'val')
            if divided or 'trainval' in files:
                files = {k: v for k, v in files.items() if k not in unused}
            return files
    return {}


def _with_numbers(rows, file, split, first_line):
    """Put the split before pairs of an image and a label."""
    bad = [
        f'line {i}: {name} {label}'
        for i, (name, label) in enumerate(rows, first_line)
        if not (name and label and label.isdecimal()) and (name or label)
    ]
    if bad:
        raise ValueError(
            f'{file}: {len(bad)} lines are not an image and a whole number: '
            + '; '.join(bad[:3])
        )
    return [(split, name.strip(), label) for name, label in rows if name]


def _listed(root, rows, info, base):
    """Make images of the rows (split, path, label) of list files."""
    folder = _image_folder(root, [row[1] for row in rows])
    rows = [(split, f'{folder}/{name}', label) for split, name, label in rows]
    return _images(rows, info, base)


def _image_folder(root, names):
    """Choose the folder in which images of the list are."""
    sample = names[:: max(len(names) // 3, 1)]
    folders = root / 'images', *subfolders(root), root
    for folder in folders:
        if any((folder / name).is_file() for name in sample):
            return folder
    return folders[0]


def _images(rows, info, base=None):
    names = [os.path.basename(path) for _, path, _ in rows]
    classes = _class_of_each(names, [row[2] for row in rows], info, base)
    return [
        LeafImage(path, name, cls, given, split, stage_of(path, info))
        for (split, path, given), name, cls in zip(
            rows, names, classes, strict=True
        )
    ]


def _class_of_each(names, given, info, base):
    """Take classes from file names where all follow the set's rule.

    Else a class is called as its folder, or by its number from 1.
    """
    found = [re.match(info.class_pattern, name) for name in names]
    if all(found):
        return [canonical(match[1]) for match in found]
    if base is None:
        return [canonical(name) for name in given]
    return [str(int(label) - base + 1) for label in given]


def subfolders(folder):
    """List the folders in a folder, sorted, without hidden ones."""
    if not folder.is_dir():
        return []
    return sorted(
        Path(e.path)
        for e in os.scandir(folder)
        if e.is_dir() and not e.name.startswith('.')
    )
