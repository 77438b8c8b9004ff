# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write Ultra-FGVC datasets of 4 x 4 px images in every form.

Independent of the writers in the package, to test its readers.
"""

import os
from collections import defaultdict
from typing import NamedTuple

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

AGES = ('R1', 'R3', 'R4', 'R5', 'R6')
IMAGE_FOLDERS = dict(
    cotton80='cotton_square_new', soygene='images', soyageing='.'
)
PARQUET_FILES = dict(
    cotton80={'': 'cotton80_dataset.parquet'},
    soylocal={'': 'soybean_dataset.parquet'},
    soygene={'': 'soygene_dataset.parquet'},
    soyageing={s: f'soy_ageing_{s}_dataset.parquet' for s in AGES},
    soyglobal={'': 'soyglobal_dataset.parquet'},
)


class Leaf(NamedTuple):
    """One line of a list, with a label from 0."""

    split: str
    label: int
    class_name: str
    name: str
    stage: str = ''


def cotton_leaves():
    """List images named as in Cotton80, SoyLocal and SoyGlobal."""
    splits = {5: 'train', 3: 'train', 1: 'val'}
    splits |= dict.fromkeys((6, 2, 4), 'test')
    return [
        Leaf(split, c, str(c + 1), f'{c + 1}_{k}_{_ending(split)}.png')
        for c in range(80)
        for k, split in splits.items()
    ]


def gene_leaves(names=('GDC008', 'GDC1', 'PI9', 'SD10', 'SD9')):
    """List images named as in SoyGene; classes are sorted as strings."""
    splits = {'1-001_1': 'train', '2-001_1': 'val', '1-001_2': 'test'}
    return [
        Leaf(split, c, name, f'{name}-{k}_{_ending(split)}.png')
        for c, name in enumerate(names)
        for k, split in splits.items()
    ]


def ageing_leaves(num_classes=198):
    """List images named as in SoyAgeing; stage R6 is val (CLCA authors)."""
    leaves = []
    for c in range(num_classes):
        cls = f'yd{2 * c + 12:03d}'
        for stage in AGES:
            for k in range(1, 11):
                fit = 'val' if stage == 'R6' else 'train'
                split = fit if k < 6 else 'test'
                name = f'{cls}_{stage}_{k}_{_ending(split)}.png'
                leaves.append(Leaf(split, c, cls, name, stage))
    return leaves


def _ending(split):
    return 'test' if split == 'test' else 'train'


def png(shape=(4, 4, 3), value=7, dtype=np.uint8):
    """Encode a PNG image with one value."""
    return cv2.imencode('.png', np.full(shape, value, dtype))[1].tobytes()


def noise(ending):
    """Encode 64x64 random pixels."""
    pixels = np.random.default_rng(0).integers(256, size=(64, 64, 3))
    return cv2.imencode(ending, pixels.astype(np.uint8))[1].tobytes()


def write_images(paths, root):
    """Create many files quickly, as links to one image."""
    root.mkdir(parents=True, exist_ok=True)
    one = root / '.one.png'
    one.write_bytes(png())
    for folder in {os.path.dirname(path) for path in paths}:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for path in paths:
        os.link(one, root / path)


def write(form, root, name, leaves):
    """Write a dataset in one form."""
    if form == 'csv':
        write_csv(root, leaves, IMAGE_FOLDERS[name])
    elif form == 'parquet':
        for stage, file in PARQUET_FILES[name].items():
            root.mkdir(parents=True, exist_ok=True)
            own = [leaf for leaf in leaves if leaf.stage == stage]
            write_rows(root / file, own, [png()] * len(own))
    elif form == 'released':
        write_released(root, leaves)
    else:  # stages together
        names = [f'{x.split}/{x.class_name}/{x.name}' for x in leaves]
        write_images(names, root)


def write_csv(root, leaves, folder):
    """Write CSV lists like the CLCA authors."""
    rows = defaultdict(list)
    for leaf in leaves:
        path = f'{leaf.stage}/images/{leaf.name}' if leaf.stage else leaf.name
        rows[leaf.split].append((leaf.label, path))
    rows['train_val'] = rows['train'] + rows['val']
    paths = [
        path for split in ('train_val', 'test') for _, path in rows[split]
    ]
    write_images([f'{folder}/{path}' for path in paths], root)
    for split, lines in rows.items():
        text = ''.join(f'{label},{path}\n' for label, path in lines)
        (root / f'{split}.csv').write_text('class_id,dir\n' + text)


def write_released(root, leaves):
    """Write the form of the archives; SoyAgeing has one root per stage."""
    for leaf in leaves:
        anno = root / leaf.stage / 'anno'
        anno.mkdir(parents=True, exist_ok=True)
    lines = defaultdict(str)
    for leaf in leaves:
        # the train list of a stage contains all training images
        split = leaf.split if not leaf.stage else _ending(leaf.split)
        file = root / leaf.stage / 'anno' / f'{split}.txt'
        lines[file] += f'{leaf.name} {leaf.label + 1}\n'
    for file, text in lines.items():
        file.write_text(text)
    write_images(
        [f'{x.stage}/images/{x.name}'.lstrip('/') for x in leaves], root
    )


def write_rows(path, leaves, images, row_group_size=None):
    """Write a parquet file with the four columns of the mirror."""
    table = pa.table(
        dict(
            image=images,
            label=[leaf.label for leaf in leaves],
            class_name=[leaf.class_name for leaf in leaves],
            split=[leaf.split for leaf in leaves],
        )
    )
    pq.write_table(table, path, row_group_size=row_group_size)
