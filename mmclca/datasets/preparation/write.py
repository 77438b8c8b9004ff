# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write images in each layout."""

import os
import sys
from collections import defaultdict
from io import BytesIO
from pathlib import Path

from mmengine.utils import track_iter_progress

from mmclca.utils.csv_files import write_rows
from mmclca.utils.extras import require
from mmclca.utils.reading import read_bytes

from ..decoding import open_image
from ..image_files import IMAGE_SUFFIXES
from ..ultra_fgvc.lists import of_part

# Large enough for sequential reading, small enough for one image of it.
ROW_GROUP_BYTES = 4 << 20
_SUFFIX_OF = dict(JPEG='.jpg', TIFF='.tif', MPO='.jpg')


def _suffix(content):
    with open_image(BytesIO(content)) as image:
        return _SUFFIX_OF.get(image.format, f'.{image.format.lower()}')


def _contents(images):
    """Read images one by one, with a progress bar, and end their names."""
    for image in track_iter_progress(images, file=sys.stderr):
        content = read_bytes(image.path)
        if not image.file_name.lower().endswith(IMAGE_SUFFIXES):
            name = image.file_name + _suffix(content)
            image = image._replace(file_name=name)
        yield image, content


def write_files(root, images, info, layout):
    """Write images as files, and the lists of the layout.

    Args:
        root (Path): An empty folder.
        images (list[LeafImage]): The images, labelled.
        info (UltraFGVCInfo): The set.
        layout (str): ``released``, ``csv`` or ``folders``.
    """
    written = []
    for image, content in _contents(images):
        place = _place(image, info, layout)
        file = root / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        written.append((place, image))
    if layout == 'released':
        _write_anno(root, written)
    if layout == 'csv':
        _write_csv(root, written, info)


def _place(image, info, layout):
    stage = f'{image.stage}/' if len(info.stages) > 1 else ''
    if layout == 'folders':
        return f'{stage}{image.split}/{image.class_name}/{image.file_name}'
    if layout == 'released':
        return f'{stage}images/{image.file_name}'
    if image.stage:
        return f'{image.stage}/images/{image.file_name}'
    return f'{info.image_folder}/{image.file_name}'


def _write_anno(root, written):
    lists = defaultdict(list)
    for place, image in written:
        anno = root / Path(place).parent.parent / 'anno' / f'{image.split}.txt'
        lists[anno].append(f'{image.file_name} {image.label + 1}\n')
    for file, lines in lists.items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(''.join(lines))


def _write_csv(root, written, info):
    lists = defaultdict(list)
    for place, image in written:
        path = os.path.relpath(place, info.image_folder)
        lists[image.split].append((image.label, path))
    train, val = lists.pop('train', []), lists.pop('val', [])
    if val:
        lists |= dict(train=train, val=val)
    lists['train_val'] = sorted(train + val)
    for name, rows in lists.items():
        write_rows(root / f'{name}.csv', [('class_id', 'dir'), *rows])


def write_parquet(root, images, info):
    """Write a parquet file, for SoyAgeing one a stage.

    Args:
        root (Path): An empty folder.
        images (list[LeafImage]): The images, labelled.
        info (UltraFGVCInfo): The set.
    """
    for part in info.parts:
        _write_parquet_file(root / part.parquet, of_part(images, part))


def _write_parquet_file(path, images):
    require('pyarrow', extra='parquet')
    import pyarrow as pa
    from pyarrow import parquet

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
    with parquet.ParquetWriter(path, schema, **options) as writer:
        for rows in _batches(images):
            writer.write_table(pa.Table.from_pylist(rows, schema))


def _batches(images):
    rows, size = [], 0
    for image, content in _contents(images):
        rows.append(image._asdict() | dict(image=content))
        size += len(content)
        if size >= ROW_GROUP_BYTES:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows
