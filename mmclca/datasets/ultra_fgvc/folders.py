# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Readers of the forms in which people keep an Ultra-FGVC set.

==========  ==============================================================
released    ``anno/{train,val,test}.txt`` (file name, label from 1) beside
            ``images/``
csv         ``{train,val,train_val,test}.csv`` (class_id from 0, dir) beside
            a folder of images; SoyAgeing's paths begin with the stage
folders     ``train/ val/ test/``, in each one folder a class
parquet     one file with the columns image, label, class_name, split
==========  ==============================================================

A reader is a function of the place and the set's row of the table, and
returns a flat list of :class:`LeafImage`; it opens no image.
"""

import os
import re
from pathlib import Path

from mmclca.utils.csv_files import read_rows

from ..image_files import IMAGE_SUFFIXES
from ..parquet import open_parquet, parquet_uri
from .info import SPLIT_WORDS, LeafImage, canonical, stage_of

_CSV_NAMES = dict(train='train', val='val', trainval='train_val', test='test')


def read_released(root, info):
    """Read ``anno/*.txt`` and ``images/``.

    Args:
        root (Path): The folder that holds both.
        info (UltraFGVCInfo): The set.

    Returns:
        list[LeafImage]: All images of all lists.

    Raises:
        ValueError: If lines are not ``<file name> <label>``.
    """
    rows = []
    for split in ('train', 'val', 'test'):
        file = root / 'anno' / f'{split}.txt'
        if file.is_file():
            rows += [(split, *row) for row in _read_anno(file)]
    return _listed(root, ('images', 'images_pytorch'), rows, info, base=1)


def read_csv(root, info):
    """Read the CLCA authors' CSV files.

    ``train_val.csv`` is read only where ``train.csv`` or ``val.csv`` is
    absent: it is the sum of the two.

    Args:
        root (Path): The folder that holds the CSV files and, below it, the
            images.
        info (UltraFGVCInfo): The set. For a stage of SoyAgeing,
            ``train_R1.csv`` comes before ``train.csv``.

    Returns:
        list[LeafImage]: All images of all lists.

    Raises:
        ValueError: If a file has no such columns or a class_id is no number.
    """
    rows = []
    for split, file in csv_files(root, info).items():
        rows += [(split, *row) for row in _read_csv_file(file)]
    folders = (info.image_folder, 'images', '.')
    return _listed(root, folders, rows, info, base=0)


def read_folders(root, info):
    """Read ``train/ val/ test/`` with one folder a class in each.

    Args:
        root (Path): The folder that holds the splits.
        info (UltraFGVCInfo): The set.

    Returns:
        list[LeafImage]: All images of all folders.
    """
    rows = []
    for split in ('train', 'val', 'test'):
        for folder in subfolders(root / split):
            files = sorted(os.listdir(folder))
            names = [n for n in files if n.lower().endswith(IMAGE_SUFFIXES)]
            rows += [(split, f'{folder}/{n}', folder.name) for n in names]
    return _images(rows, info)


def read_parquet(path, info):
    """Read the rows of a parquet file, but not its images.

    Args:
        path (Path): The file. Beside the four columns of the mirror, a column
            ``file_name`` is read where there is one.
        info (UltraFGVCInfo): The set.

    Returns:
        list[LeafImage]: All rows, with addresses for ``ParquetBackend``.

    Raises:
        ValueError: If a column is missing or a split unknown.
    """
    rows = _read_rows(path)
    _check_words({row['split'] for row in rows}, path)
    return [
        LeafImage(
            parquet_uri(path, i),
            row.get('file_name', str(i)),
            canonical(str(row['class_name'])),
            str(row['label']),
            SPLIT_WORDS[row['split']],
            stage_of(row.get('file_name', ''), info),
        )
        for i, row in enumerate(rows)
    ]


def _read_rows(path):
    file = open_parquet(path)
    names = file.schema_arrow.names
    missing = {'image', 'label', 'class_name', 'split'} - set(names)
    if missing:
        raise ValueError(
            f'{path} has the columns {", ".join(names)}; '
            f'{", ".join(sorted(missing))} not found'
        )
    wanted = ('label', 'class_name', 'split', 'file_name')
    columns = [name for name in wanted if name in names]
    return file.read(columns=columns, use_threads=False).to_pylist()


def _check_words(splits, path):
    unknown = splits - SPLIT_WORDS.keys()
    if unknown:
        raise ValueError(
            f'{path}: the column split has {sorted(map(str, unknown))}; '
            f'expected {", ".join(SPLIT_WORDS)}'
        )


READERS = dict(
    csv=read_csv,
    released=read_released,
    folders=read_folders,
    parquet=read_parquet,
)


def csv_files(root, info):
    """Choose the CSV file of each split; none where there is none."""
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


def _read_csv_file(file):
    rows = read_rows(file)
    columns = [*rows[0]] if rows else []
    if not {'class_id', 'dir'} <= {*columns}:
        raise ValueError(
            f'{file} has the columns {columns}; expected '
            "'class_id' (from 0) and 'dir' (path of an image)"
        )
    rows = [(row['dir'], row['class_id']) for row in rows]
    return _with_numbers(rows, file, first_line=2)


def _read_anno(file):
    with open(file, encoding='utf-8-sig') as lines:
        rows = [line.strip().rpartition(' ')[::2] for line in lines]
    return _with_numbers(rows, file, first_line=1)


def _with_numbers(rows, file, first_line):
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
    return [(name.strip(), label) for name, label in rows if name]


def _listed(root, folders, rows, info, base):
    """Make images of the rows (split, path, label) of list files."""
    folder = _image_folder(root, folders, [row[1] for row in rows])
    rows = [(split, f'{folder}/{name}', label) for split, name, label in rows]
    return _images(rows, info, base)


def _image_folder(root, folders, names):
    """Choose the folder in which images of the list are, else the first."""
    others = [f.name for f in subfolders(root)]
    sample = names[:: max(len(names) // 3, 1)]
    for folder in (*folders, *others, '.'):
        if any((root / folder / name).is_file() for name in sample):
            return root / folder
    existing = [f for f in folders if f != '.' and (root / f).is_dir()]
    return root / (existing or folders)[0]


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
