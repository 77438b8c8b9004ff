# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write images in each layout."""

import csv
import os
import sys
from collections import defaultdict
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from mmengine import fileio
from mmengine.utils import track_iter_progress
from PIL import Image

from ..parquet_backend import import_parquet
from .layouts import SUFFIXES

# Large enough for sequential reading, small enough for one image of it.
ROW_GROUP_BYTES = 4 << 20
_SUFFIX_OF = dict(JPEG='.jpg', TIFF='.tif', MPO='.jpg')


class Item(NamedTuple):
    """One image to be written."""

    path: str
    class_name: str
    label: int
    split: str
    stage: str
    file_name: str


def _suffix(content):
    with Image.open(BytesIO(content)) as image:
        return _SUFFIX_OF.get(image.format, f'.{image.format.lower()}')


def _contents(items):
    """Read images one by one, with a progress bar, and end their names."""
    for item in track_iter_progress(items, file=sys.stderr):
        content = fileio.get(item.path)
        if not item.file_name.lower().endswith(SUFFIXES):
            name = item.file_name + _suffix(content)
            item = item._replace(file_name=name)
        yield item, content


def write_files(root, items, info, layout):
    """Write images as files, and the lists of the layout.

    Args:
        root (Path): An empty folder.
        items (list[Item]): The images.
        info (UltraFGVCInfo): The set.
        layout (str): ``released``, ``csv`` or ``folders``.
    """
    written = []
    for item, content in _contents(items):
        place = _PLACES[layout](item, info)
        file = root / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        written.append((place, item))
    if layout == 'released':
        _write_anno(root, written)
    if layout == 'csv':
        _write_csv(root, written, info)


def _stage_folder(item, info):
    return f'{item.stage}/' if len(info.stages) > 1 else ''


def _released_place(item, info):
    return f'{_stage_folder(item, info)}images/{item.file_name}'


def _csv_place(item, info):
    if item.stage:
        return f'{item.stage}/images/{item.file_name}'
    return f'{info.image_folder}/{item.file_name}'


def _folders_place(item, info):
    stage = _stage_folder(item, info)
    return f'{stage}{item.split}/{item.class_name}/{item.file_name}'


_PLACES = dict(
    released=_released_place, csv=_csv_place, folders=_folders_place
)


def _write_anno(root, written):
    lists = defaultdict(list)
    for place, item in written:
        anno = root / Path(place).parent.parent / 'anno' / f'{item.split}.txt'
        lists[anno].append(f'{item.file_name} {item.label + 1}\n')
    for file, lines in lists.items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(''.join(lines))


def _write_csv(root, written, info):
    lists = defaultdict(list)
    for place, item in written:
        path = os.path.relpath(place, info.image_folder)
        lists[item.split].append((item.label, path))
    train, val = lists.pop('train', []), lists.pop('val', [])
    if val:
        lists |= dict(train=train, val=val)
    lists['train_val'] = sorted(train + val)
    for name, rows in lists.items():
        with open(root / f'{name}.csv', 'w', newline='') as file:
            writer = csv.writer(file, lineterminator='\n')
            writer.writerows([('class_id', 'dir'), *rows])


def write_parquet(root, items, info):
    """Write a parquet file, for SoyAgeing one a stage.

    Args:
        root (Path): An empty folder.
        items (list[Item]): The images.
        info (UltraFGVCInfo): The set.
    """
    for part in info.parts:
        own = [i for i in items if not part.stages or i.stage in part.stages]
        _write_parquet_file(root / part.parquet, own)


def _write_parquet_file(path, items):
    import pyarrow as pa

    schema = pa.schema(
        dict(
            image=pa.binary(),
            label=pa.int64(),
            class_name=pa.string(),
            split=pa.string(),
            file_name=pa.string(),
        )
    )
    # Images are compressed already; small row groups can be read at random.
    options = dict(compression='none', use_dictionary=['class_name', 'split'])
    with import_parquet().ParquetWriter(path, schema, **options) as writer:
        for rows in _batches(items):
            writer.write_table(pa.Table.from_pylist(rows, schema))


def _batches(items):
    rows, size = [], 0
    for item, content in _contents(items):
        rows.append(
            dict(
                image=content,
                label=item.label,
                class_name=item.class_name,
                split=item.split,
                file_name=item.file_name,
            )
        )
        size += len(content)
        if size >= ROW_GROUP_BYTES:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows
