# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Readers of the forms in which people keep an Ultra-FGVC dataset.

==========  ==============================================================
csv         ``{train,val,train_val,test}.csv`` (class_id from 0, dir) next to
            an image folder; paths of SoyAgeing begin with the stage
released    ``anno/{train,val,test}.txt`` (file name, label from 1) next to
            ``images/``
folders     ``train/ val/ test/`` with one folder per class
parquet     one file with the columns image, label, class_name, split
==========  ==============================================================

A reader lists :class:`LeafImage` rows and opens no image.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.extras import require
from mmclca.utils.files import read_lines, read_rows

from ..image_files import IMAGE_SUFFIXES
from ..photos.lists import read_labels
from .info import LeafImage, canonical, find_stage

_COLUMNS = 'label', 'class_name', 'split'
_LISTED = 'train', 'val', 'test'
_BATCH_ROWS = 16


def read_csv(root, info) -> list[LeafImage]:
    """Read the CLCA authors' CSV files.

    ``train_R1.csv`` precedes ``train.csv`` for a stage of SoyAgeing.
    ``train_val.csv`` is used only if ``train.csv`` or ``val.csv`` is missing.
    """
    files = _existing(root, '{}.csv')
    if len(info.stages) == 1:
        files = _existing(root, f'{{}}_{info.stages[0]}.csv') or files
    whole = 'train_val' in files and not {'train', 'val'} <= files.keys()
    for unused in ('train', 'val') if whole else ('train_val',):
        files.pop(unused, None)
    return _read_lists(root, files, _lines_of_csv, 0, info)


def read_released(root, info) -> list[LeafImage]:
    """Read ``anno/*.txt`` and ``images/``."""
    files = _existing(root, 'anno/{}.txt')
    return _read_lists(root, files, read_lines, 1, info)


def read_folders(root, info) -> list[LeafImage]:
    """Read ``train/ val/ test/`` with one folder per class."""
    rows = [
        (split, f'{folder}/{name}', folder.name)
        for split in _LISTED
        for folder in subfolders(root / split)
        for name in sorted(os.listdir(folder))
        if name.lower().endswith(IMAGE_SUFFIXES)
    ]
    return _images(rows, info)


def read_parquet(path, info) -> list[LeafImage]:
    """Read the rows of a parquet file; images have paths ``FILE/ROW``."""
    with _open_parquet(path) as file:
        columns = file.schema_arrow.names
        rows = file.read(columns=[*_COLUMNS], use_threads=False).to_pylist()
    _check_names(path, 'columns', columns, ('image', *_COLUMNS))
    for row in rows:
        row['split'] = str(row['split']).replace('validation', 'val')
    _check_names(path, 'splits', _LISTED, {row['split'] for row in rows})
    classes = [canonical(str(row['class_name'])) for row in rows]
    return [
        LeafImage(f'{path}/{i}', str(i), name, str(row['label']), row['split'])
        for i, (row, name) in enumerate(zip(rows, classes, strict=True))
    ]


READERS = dict(
    csv=read_csv,
    released=read_released,
    folders=read_folders,
    parquet=read_parquet,
)


@contextmanager
def _open_parquet(path):
    """Open a parquet file; raise Error if it is damaged."""
    require('pyarrow', extra='parquet')
    from pyarrow import parquet

    try:
        yield parquet.ParquetFile(path, memory_map=True, pre_buffer=False)
    except (OSError, ValueError) as error:  # pyarrow raises both
        raise Error(
            f'{path} is damaged ({error}); download it again'
        ) from error


def parquet_images(path) -> Iterator[tuple[str, bytes | None]]:
    """Yield paths and encoded images of a parquet file, in small batches."""
    options = dict(columns=['image'], use_threads=False)
    with _open_parquet(path) as file:
        row = 0
        for batch in file.iter_batches(_BATCH_ROWS, **options):
            for image in batch['image'].to_pylist():
                # the ``datasets`` library writes a struct {bytes, path}
                image = image['bytes'] if isinstance(image, dict) else image
                if isinstance(image, str):  # never open it as a path
                    raise Error(f'row {row}: expected bytes, found text')
                yield f'{path}/{row}', image
                row += 1


def _existing(root, pattern) -> dict[str, Path]:
    names = (*_LISTED, 'train_val')
    files = {name: root / pattern.format(name) for name in names}
    return {name: file for name, file in files.items() if file.is_file()}


def _read_lists(root, files, lines_of, base, info) -> list[LeafImage]:
    """Read list files by split; their labels count from ``base``."""
    rows = [
        (split.replace('_', ''), name, str(label))
        for split, file in files.items()
        for name, label in read_labels(file, lines_of=lines_of)
    ]
    folder = _image_folder(root, [name for _, name, _ in rows])
    rows = [(split, f'{folder}/{name}', label) for split, name, label in rows]
    return _images(rows, info, base)


def _lines_of_csv(file) -> list[str]:
    rows = read_rows(file, 'class_id', 'dir')
    lines = [f'{row["dir"] or ""} {row["class_id"] or ""}' for row in rows]
    return ['', *lines]  # errors count the header as line 1


def _check_names(file, kind, found, needed) -> None:
    missing = [name for name in needed if name not in found]
    if missing:
        raise Error(f'{file}: missing {kind} {missing}, found {[*found]}')


def _image_folder(root, names) -> Path:
    """Select the folder with the images of a list."""
    sample = names[:: max(len(names) // 3, 1)]
    folders = root / 'images', *subfolders(root), root
    for folder in folders:
        if any((folder / name).is_file() for name in sample):
            return folder
    return folders[0]


def _images(rows, info, base=None) -> list[LeafImage]:
    """Make images of rows (split, path, label).

    File names give the class if all follow the pattern of the dataset.
    Otherwise a class is named by its folder, or by its number from 1.
    """
    names = [os.path.basename(path) for _, path, _ in rows]
    classes = [re.match(info.class_pattern, name) for name in names]
    if all(classes):
        classes = [match[1] for match in classes]
    elif base is None:
        classes = [folder for *_, folder in rows]
    else:
        classes = [str(int(label) - base + 1) for *_, label in rows]
    classes = map(canonical, classes)
    return [
        LeafImage(path, name, of, given, split, find_stage(path, info))
        for (split, path, given), name, of in zip(
            rows, names, classes, strict=True
        )
    ]


def subfolders(folder: Path) -> list[Path]:
    """List the visible folders in a folder, sorted."""
    found = os.scandir(folder) if folder.is_dir() else ()
    return sorted(
        Path(e.path) for e in found if e.is_dir() and e.name[0] != '.'
    )
