# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Coarse classes of fine classes, and datasets with coarse labels."""

import json
import pickle
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from mmpretrain.datasets import CIFAR100
from mmpretrain.datasets.base_dataset import BaseDataset

from mmclca.errors import Error
from mmclca.registry import DATASETS
from mmclca.utils.files import read_bytes
from mmclca.utils.messages import check_choice, print_safe, printable

from .class_folders import ClassFolders
from .photos import LabeledImages
from .photos.cells import read_cells
from .photos.spellings import normalize_name


def read_levels(table: str | PathLike) -> dict[str, dict[str, str]]:
    """Read the coarse class of each class, per level.

    The table has a header row and a format supported by ``fit``: classes in
    the first column, then one column per level.

    Raises:
        FileNotFoundError: If the file does not exist.
        Error: If the level column is missing, a cell is empty, or a
            class has two coarse classes.
    """
    cells, notes = read_cells(Path(table))
    print_safe(*notes)
    _, *levels = cells
    if not levels:
        raise Error(
            f'{table} has no level column; add a header row, the classes in '
            'the first column, and one column per level'
        )
    coarse_classes = {level: {} for level in levels}
    for row in zip(*cells.values(), strict=True):
        name, *coarser = map(normalize_name, row)
        if not (name and all(coarser)):
            raise Error(
                f'{table}: the row of {printable(name or "an empty class")} '
                f'has empty cells; fill all {len(cells)} columns'
            )
        for level, coarse in zip(levels, coarser, strict=True):
            previous = coarse_classes[level].setdefault(name, coarse)
            if previous != coarse:
                raise Error(
                    f'{table}: {printable(name)} has two values of {level}, '
                    f'{previous} and {coarse}; keep one per class'
                )
    return coarse_classes


def read_level(
    table: str | PathLike, level: str | None = None
) -> dict[str, str]:
    """Read one level of :func:`read_levels`, by default the first.

    Raises:
        Error: If the level does not exist.
    """
    levels = read_levels(table)
    level = level or next(iter(levels))
    check_choice(levels, level=level)
    return levels[level]


def coarse_labels(
    names: Sequence[str], coarse_of: dict[str, str], source: str = 'the table'
) -> tuple[list[int], list[str]]:
    """Return the coarse label of each class, and the coarse class names.

    ``coarse_of`` is the result of :func:`read_level`, ``source`` its name in
    messages.

    Raises:
        Error: If a class is missing in the table.
    """
    names = [normalize_name(name) for name in names]
    unknown = sorted({name for name in names if name not in coarse_of})
    if unknown:
        raise Error(
            f'{source} has no row for {len(unknown)} classes, such as '
            f'{printable(unknown[0])}; add one row per class'
        )
    coarse = sorted({coarse_of[name] for name in names})
    number = {name: label for label, name in enumerate(coarse)}
    return [number[coarse_of[name]] for name in names], coarse


def at_level(
    images: LabeledImages, coarse_of: dict[str, str]
) -> LabeledImages:
    """Replace classes by coarse classes, see :func:`coarse_labels`."""
    labels, names = coarse_labels(images.classes, coarse_of)
    coarse = [x if x is None else labels[x] for x in images.labels]
    return replace(images, labels=coarse, classes=names)


@DATASETS.register_module()
class CoarseDataset(ClassFolders):
    """:class:`ClassFolders` with coarse labels; ``fine_label`` is kept.

    Args:
        levels (str): Table of coarse classes, see :func:`read_levels`.
        level (str, optional): Title of a column. Defaults to None: the second
            column.
        **settings: ``ClassFolders`` settings.

    Raises:
        Error: See :func:`read_level` and :func:`coarse_labels`.
    """

    def __init__(self, levels: str, level: str | None = None, **settings):
        self.levels = levels
        self.level = level
        super().__init__(**settings)

    def load_data_list(self) -> list[dict]:
        """List path and labels of all images."""
        images = super().load_data_list()
        table = read_level(self.levels, self.level)
        labels, names = coarse_labels(self.CLASSES, table, self.levels)
        self._metainfo['classes'] = tuple(names)
        for image in images:
            fine = image['gt_label']
            image.update(fine_label=fine, gt_label=labels[fine])
        return images


@DATASETS.register_module()
class INaturalist(BaseDataset):
    """iNaturalist 2018 and 2019 with the classes of a taxonomic level.

    Args:
        level (str): 'kingdom', 'phylum', 'class', 'order', 'family',
            'genus', or 'name' for species. Defaults to 'name'.
        **settings: Settings for mmpretrain's ``BaseDataset``: ``data_root``
            contains the released ``categories.json``, ``ann_file`` is the
            released list of a split, such as ``train2018.json``.

    Raises:
        Error: If the level does not exist, or the list lacks
            annotations, such as a test list.
    """

    def __init__(self, level: str = 'name', **settings):
        self.level = level
        super().__init__(**settings)

    def load_data_list(self) -> list[dict]:
        """List path and labels of all images."""
        source = Path(self.data_root, 'categories.json')
        categories = json.loads(read_bytes(source))
        levels = set.intersection(*map(set, categories))
        check_choice(sorted(levels), level=self.level)
        names = {one['id']: str(one[self.level]) for one in categories}
        classes = sorted(set(names.values()))
        self._metainfo['classes'] = tuple(classes)
        number = {name: label for label, name in enumerate(classes)}
        annotations = json.loads(read_bytes(self.ann_file))
        check_choice(annotations, part='annotations')
        paths = {one['id']: one['file_name'] for one in annotations['images']}
        return [
            dict(
                img_path=str(Path(self.img_prefix, paths[one['image_id']])),
                gt_label=number[names[one['category_id']]],
            )
            for one in annotations['annotations']
        ]


@DATASETS.register_module()
class CoarseCIFAR100(CIFAR100):
    """CIFAR-100 with its 20 coarse labels; ``fine_label`` is kept.

    Args:
        **settings: Settings for mmpretrain's ``CIFAR100``.

    Raises:
        Error: If the file lacks coarse labels.
    """

    meta = dict(CIFAR100.meta, key='coarse_label_names')
    METAINFO = {}  # class names are read from the files

    def load_data_list(self) -> list[dict]:
        """List path and labels of all images."""
        images = super().load_data_list()
        file = Path(self.data_prefix['root'], self.base_folder, self.split)
        entry = pickle.loads(read_bytes(file), encoding='latin1')
        check_choice(entry, key='coarse_labels')
        for image, coarse in zip(images, entry['coarse_labels'], strict=True):
            image.update(fine_label=image['gt_label'], gt_label=int(coarse))
        return images
