# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Readers of the layouts in which Ultra-FGVC datasets are published.

==========  ==============================================================
csv         ``{train,val,train_val,test}.csv`` (class_id from 0, dir) next to
            an image folder; paths of SoyAgeing begin with the stage
released    ``anno/{train,val,test}.txt`` (file name, label from 1) next to
            ``images/``; SoyAgeing has a folder per stage
folders     ``train/ val/ test/`` with one folder per class
parquet     one file with the columns image, label, class_name, split
==========  ==============================================================

A reader lists :class:`LeafImage` rows, none if a folder has another layout,
and opens no image. Training reads the layout ``csv``, the import all.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.extras import require
from mmclca.utils.files import read_rows

from ..image_files import IMAGE_SUFFIXES
from ..photos.lists import read_labels
from .info import UltraFGVCInfo

_LISTED = 'train', 'val', 'test'
_STAGE = re.compile(r'(?:^|[/_])(R[13456])(?=[/_])')
_PARQUET_COLUMNS = 'label', 'class_name', 'split'
_BATCH_ROWS = 16


@dataclass(frozen=True)
class LeafImage:
    """Row of a dataset list: one image.

    Args:
        path (str): Path of the file, or ``FILE/ROW`` of a parquet file.
        split (str): 'train', 'val', 'trainval' or 'test'.
        listed_label (str): Label or folder in the list.
        class_name (str): Name of the cultivar. Defaults to '': not known yet.
        stage (str): Growth stage, '' for a dataset without stages.
        label (int, optional): Label for training, from 0. Defaults to None.
    """

    path: str
    split: str
    listed_label: str
    class_name: str = ''
    stage: str = ''
    label: int | None = None

    @property
    def file_name(self) -> str:
        """File name, or row number."""
        return os.path.basename(self.path)


def read_csv(folder: Path, info: UltraFGVCInfo) -> list[LeafImage]:
    """Read CSV lists as the CLCA authors and the import write them.

    ``train_R1.csv`` precedes ``train.csv`` for a stage of SoyAgeing.
    ``train_val.csv`` is used only if ``train.csv`` or ``val.csv`` is missing.
    """
    files = _find_lists(folder, '{}.csv')
    if len(info.stages) == 1:
        files = _find_lists(folder, f'{{}}_{info.stages[0]}.csv') or files
    if 'train_val' in files and not {'train', 'val'} <= files.keys():
        files = {x: files[x] for x in files if x not in ('train', 'val')}
    else:
        files.pop('train_val', None)
    images = []
    for split, file in files.items():
        for line, row in enumerate(read_rows(file, 'class_id', 'dir'), 2):
            path, label = row['dir'] or '', row['class_id'] or ''
            if not (path and label.isdecimal()):
                raise Error(
                    f'{file}, line {line}: expected a class_id from 0 and a '
                    f'path, found {label!r} and {path!r}'
                )
            images.append(LeafImage(path, split.replace('_', ''), label))
    return _name_classes(_locate(images, folder), info, first_label=0)


def read_released(folder: Path, info: UltraFGVCInfo) -> list[LeafImage]:
    """Read ``anno/*.txt`` and ``images/`` for a dataset or stage."""
    if len(info.stages) == 1 and (folder / info.stages[0]).is_dir():
        folder = folder / info.stages[0]
    images = [
        LeafImage(path, split, str(label))
        for split, file in _find_lists(folder, 'anno/{}.txt').items()
        for path, label in read_labels(file)
    ]
    return _name_classes(_locate(images, folder), info, first_label=1)


def read_folders(folder: Path, info: UltraFGVCInfo) -> list[LeafImage]:
    """Read ``train/ val/ test/`` with one folder per class."""
    images = [
        LeafImage(f'{class_folder}/{name}', split, class_folder.name)
        for split in _LISTED
        for class_folder in list_subfolders(folder / split)
        for name in sorted(os.listdir(class_folder))
        if name.lower().endswith(IMAGE_SUFFIXES)
    ]
    return _name_classes(images, info)


def read_parquet(folder: Path, info: UltraFGVCInfo) -> list[LeafImage]:
    """Read the rows of a parquet file; images have paths ``FILE/ROW``."""
    places = (folder, folder / info.parquet, folder / _HUB / info.parquet)
    file = next((x for x in places if x.is_file()), None)
    if file is None:
        return []
    with _open_parquet(file) as content:
        columns = content.schema_arrow.names
        missing = {'image', *_PARQUET_COLUMNS} - {*columns}
        if missing:
            raise Error(
                f'{file}: missing columns {sorted(missing)}, found {columns}'
            )
        rows = content.read(columns=[*_PARQUET_COLUMNS], use_threads=False)
    images = [
        LeafImage(
            path=f'{file}/{i}',
            class_name=normalize_class(str(row['class_name'])),
            listed_label=str(row['label']),
            split=str(row['split']).replace('validation', 'val'),
        )
        for i, row in enumerate(rows.to_pylist())
    ]
    unknown = {image.split for image in images} - {*_LISTED}
    if unknown:
        raise Error(
            f'{file}: unknown splits {sorted(unknown)}, expected '
            f'{", ".join(_LISTED)}'
        )
    return images


LAYOUTS = dict(
    csv=read_csv,
    released=read_released,
    folders=read_folders,
    parquet=read_parquet,
)
_HUB = 'datasets/ufgvc'  # folder of the parquet files in the mirror


@contextmanager
def _open_parquet(file: Path) -> Iterator:
    """Open a parquet file; raise Error if it is damaged."""
    require('pyarrow', extra='parquet')
    from pyarrow import ArrowException, parquet

    try:
        yield parquet.ParquetFile(file, memory_map=True, pre_buffer=False)
    except (OSError, ArrowException) as error:
        raise Error(
            f'{file} is damaged ({error}); download it again'
        ) from error


def read_parquet_images(file: Path) -> Iterator[tuple[str, bytes | None]]:
    """Yield paths and encoded images from a parquet file, in batches."""
    with _open_parquet(file) as content:
        row = 0
        for batch in content.iter_batches(
            _BATCH_ROWS, columns=['image'], use_threads=False
        ):
            for image in batch['image'].to_pylist():
                # the ``datasets`` library writes a struct {bytes, path}
                if isinstance(image, dict):
                    image = image.get('bytes')
                # a text or number is never opened as a path or descriptor
                if image is not None and not isinstance(image, bytes):
                    raise Error(
                        f'{file}, row {row}: expected the bytes of an image, '
                        f'found {type(image).__name__}'
                    )
                yield f'{file}/{row}', image
                row += 1


def list_subfolders(folder: Path) -> list[Path]:
    """List the visible folders in a folder, sorted."""
    entries = os.scandir(folder) if folder.is_dir() else ()
    return sorted(
        Path(entry.path)
        for entry in entries
        if entry.is_dir() and entry.name[0] != '.'
    )


def normalize_class(name: str) -> str:
    """Remove leading zeros from a class number."""
    return str(int(name)) if name.isdecimal() else name


def _find_lists(folder: Path, pattern: str) -> dict[str, Path]:
    """Return the existing list files by split."""
    names = (*_LISTED, 'train_val')
    files = {name: folder / pattern.format(name) for name in names}
    return {name: file for name, file in files.items() if file.is_file()}


def _locate(images: list[LeafImage], folder: Path) -> list[LeafImage]:
    """Add the image folder to the paths in a list."""
    parents = [folder / 'images', *list_subfolders(folder), folder]
    for parent in parents:
        sample = images[:: max(len(images) // 3, 1)]
        if any((parent / image.path).is_file() for image in sample):
            break
    else:
        parent = parents[0]
    return [replace(x, path=f'{parent}/{x.path}') for x in images]


def _name_classes(
    images: list[LeafImage],
    info: UltraFGVCInfo,
    first_label: int | None = None,
) -> list[LeafImage]:
    """Find class and stage per image.

    File names give the class if all follow the dataset's pattern.
    Otherwise a class is named by its folder, or by its number from 1 if
    labels count from ``first_label``.
    """
    tried = (re.match(info.class_pattern, x.file_name) for x in images)
    matches = [match for match in tried if match]
    names = [image.listed_label for image in images]
    if len(matches) == len(images):
        names = [match[1] for match in matches]
    elif first_label is not None:
        names = [str(int(name) - first_label + 1) for name in names]
    return [
        replace(
            image,
            class_name=normalize_class(name),
            stage=find_stage(image.path) if info.stages else '',
        )
        for image, name in zip(images, names, strict=True)
    ]


def find_stage(path: str) -> str:
    """Find the growth stage in a path such as R1/images/yd012_R1_1.png."""
    # folders further above may match, too
    stages = _STAGE.findall('/'.join(path.split('/')[-3:]))
    return stages[-1] if stages else ''
