# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Coarse classes of fine classes, and datasets with coarse labels."""

# before mmpretrain.datasets, to hide a line that it prints
from mmclca.registry import DATASETS

# isort: split
import json
import os
import pickle
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from mmpretrain.datasets import CIFAR100
from mmpretrain.datasets.base_dataset import BaseDataset

from mmclca.errors import Error
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
    for note in notes:
        print_safe(note)
    _, *levels = cells
    if not levels:
        raise Error(
            f'{table} has no level column; add a header row, the classes in '
            'the first column, and one column per level'
        )
    coarse_classes = {level: {} for level in levels}
    names, *columns = cells.values()
    for i, name in enumerate(map(normalize_name, names)):
        coarser = [normalize_name(column[i]) for column in columns]
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
        names = _read_categories(self.data_root, self.level)
        classes = sorted(set(names.values()))
        self._metainfo['classes'] = tuple(classes)
        labels = {name: label for label, name in enumerate(classes)}
        content = _read_json(self.ann_file)
        try:
            paths = {x['id']: x['file_name'] for x in content['images']}
            return [
                dict(
                    img_path=os.path.join(
                        self.img_prefix, paths[x['image_id']]
                    ),
                    gt_label=labels[names[x['category_id']]],
                )
                for x in content['annotations']
            ]
        except (KeyError, TypeError) as error:  # not a list of iNaturalist
            raise Error(
                f'{self.ann_file} does not list images and annotations with '
                f'known ids ({type(error).__name__}: {error}); use a released '
                'list such as train2018.json'
            ) from error


def _read_categories(folder: str, level: str) -> dict[int, str]:
    """Read the name of each category at a taxonomic level, by its id.

    Raises:
        Error: If the level does not exist, or the file is invalid.
    """
    path = Path(folder, 'categories.json')
    categories = _read_json(path)
    is_list = isinstance(categories, list) and categories
    if not is_list or not all(isinstance(x, dict) for x in categories):
        raise Error(f'{path} is not a list of categories')
    levels = set(categories[0]).intersection(*categories)
    if 'id' not in levels:
        raise Error(f'{path} has a category without an id')
    check_choice(sorted(levels), level=level)
    return {x['id']: str(x[level]) for x in categories}


def _read_json(path: str | Path):
    """Parse a JSON file.

    Raises:
        OSError: If it cannot be read.
        Error: If it is invalid.
    """
    content = read_bytes(path)
    try:
        return json.loads(content)
    except ValueError as error:  # syntax and encoding
        raise Error(f'{path} is not valid JSON: {error}') from error


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
