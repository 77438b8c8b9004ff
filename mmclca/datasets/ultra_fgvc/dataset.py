# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find an Ultra-FGVC dataset in a folder, and load one of its splits."""

import os
import shlex
from pathlib import Path
from typing import NamedTuple

from mmengine.logging import print_log
from mmpretrain.datasets import BaseDataset
from mmpretrain.datasets.base_dataset import expanduser

from mmclca.registry import DATASETS
from mmclca.utils.messages import check_choice

from ..image_files import check_images
from . import lists
from .forms import READERS, subfolders
from .info import SPLITS, LeafImage, UltraFGVCInfo, get_info, plain

TOOL = 'python tools/dataset_converters/ultra_fgvc.py'


class FoundSet(NamedTuple):
    """Images of a dataset and their places: a folder or file per stage."""

    form: str
    places: tuple[Path, ...]
    images: list[LeafImage]

    def __str__(self):
        return f'{self.form} at {", ".join(map(str, self.places))}'


def find_set(
    folder: str | Path, info: UltraFGVCInfo, to_train: bool = False
) -> FoundSet:
    """Find a dataset in a folder, in the first form of ``READERS``.

    Raises:
        FileNotFoundError: Names the searched folders, or the import command
            if training does not read the form (``to_train``).
        Error: If the lists are invalid.
    """
    folder = Path(folder)
    for form in READERS:
        for parts in ((info,), info.parts):
            found = [_first(folder, part, form) for part in parts]
            if all(found):
                places, images = zip(*found, strict=True)
                images = lists.join_parts(images, parts, info)
                one = FoundSet(form, places, images)
                if to_train and form in ('folders', 'parquet'):
                    raise FileNotFoundError(_import_advice(folder, info, one))
                return one
    searched = ''.join(f'\n  {x}' for x in _candidates(folder, info)[:-1])
    raise FileNotFoundError(
        f'{info.title} was not found. Looked in:{searched}\nfor train.csv, '
        'anno/train.txt, train/ with a folder per class, or '
        f'{", ".join(part.parquet for part in info.parts)}. Names of folders '
        'and files: docs/data_sets.md. To download it:\n'
        f'  {TOOL} download {info.name} --to {folder}'
    )


def _first(folder, info, form) -> tuple[Path, list[LeafImage]] | None:
    """Return the first candidate with images, and its images."""
    for place in _candidates(folder, info):
        if form == 'parquet':
            place = _parquet_file(place, info)
        images = READERS[form](place, info) if place else ()
        if images:
            return place, images
    return None


def _candidates(folder, info) -> list[Path]:
    """Folders named like the dataset, two levels deep, then the folder."""
    first = _named(folder, info)
    below = [f for sub in first for f in _named(sub, info)]
    # the tool and `hf download` put a parquet file into the last one
    return [*below, *first, folder, folder / 'datasets' / 'ufgvc']


def _named(folder, info) -> list[Path]:
    names = {*info.folders}
    if len(info.stages) == 1:  # often kept in the folder of all stages
        key = info.stages[0].lower()
        names |= {name.removesuffix(key) for name in info.folders}
    return [f for f in subfolders(folder) if plain(f.name) in names - {''}]


def _parquet_file(folder, info) -> Path | None:
    if folder.suffix == '.parquet' and folder.is_file():
        return folder
    names = {plain(Path(info.parquet).stem), *info.folders} - {''}
    names |= {f'{name}dataset' for name in names}
    files = sorted(folder.glob('*.parquet'))
    return next((file for file in files if plain(file.stem) in names), None)


def _import_advice(folder, info, found) -> str:
    home = folder.parent if folder.is_file() else folder
    target = home / info.name
    if target.exists():  # datasets are searched two levels deep
        target = target / info.name
    words = 'import', folder, '--dataset', info.name, '--to', target
    return (
        f'{info.title} was found as {found}. To train on it, import it once:\n'
        f'  {TOOL} {shlex.join(map(str, words))}'
    )


@DATASETS.register_module()
class UltraFGVC(BaseDataset):
    """Ultra-fine-grained leaf datasets of Yu et al.

    Cotton80, SoyLocal, SoyGene, SoyAgeing (whole, or one growth stage) and
    SoyGlobal. Yu, Zhao, Gao, Yuan and Xiong, "Benchmark Platform for
    Ultra-Fine-Grained Visual Categorization Beyond Human Performance", ICCV
    2021. Published results train on ``trainval`` and test on ``test``.

    The dataset is read as CSV lists of the CLCA authors or as released
    (``anno/*.txt`` and ``images/``); the log names the form. ``ultra_fgvc.py
    import`` converts image folders and the parquet mirror, see
    ``docs/data_sets.md``. Classes and labels do not depend on the form.

    Loading checks the class and image counts, and reports all missing, empty
    and truncated images of the split in one error. This reads the first and
    last bytes of each file and decodes suspicious ones: 5,814 files
    (SoyGlobal) take one or two seconds on a local disk. ``ultra_fgvc.py
    check`` decodes every image and so finds damage within a file.

    Args:
        dataset (str): ``cotton80``, ``soylocal``, ``soygene``, ``soyageing``,
            ``soyageing_r1``, ``_r3``, ``_r4``, ``_r5``, ``_r6`` or
            ``soyglobal``; also as in the papers (``SoyAgeing-R1``).
        split (str): ``train``, ``val``, ``trainval`` (both) or ``test``.
            Defaults to 'train'.
        data_root (str): Folder of the dataset, or its parent folder if the
            dataset has a usual name. Defaults to 'data'.
        metainfo (dict, optional): Meta information; its ``classes`` set the
            order of the labels, for a part of SoyGene or SoyAgeing. Defaults
            to None.
        check_counts (bool): Whether to require the class and image counts of
            the whole dataset. Defaults to True.
        **kwargs: ``pipeline``, ``test_mode``, ``indices``,
            ``serialize_data``, ``lazy_init`` and ``max_refetch`` of
            ``mmpretrain.datasets.BaseDataset``.

    Raises:
        Error: If the dataset or split is unknown or incomplete, or
            images are unreadable.
        FileNotFoundError: If the dataset or images are missing.
    """

    def __init__(
        self,
        dataset,
        split='train',
        data_root='data',
        metainfo=None,
        check_counts=True,
        **kwargs,
    ):
        check_choice(SPLITS, split=split)
        self.info = get_info(dataset)
        self.split = split
        self.check_counts = check_counts
        self.where = data_root
        super().__init__(
            ann_file='',
            metainfo=metainfo,
            data_root=expanduser(data_root),
            **kwargs,
        )

    def load_data_list(self):
        """List ``img_path`` and ``gt_label`` of the images in the split."""
        info = self.info
        found = find_set(self.data_root, info, to_train=True)
        print_log(f'{info.title}, {self.split}: {found}', 'current')
        self.where = str(found)
        splits = lists.divide(found.images, info)
        lists.check_split(splits, self.split, info, found, self.check_counts)
        listed = splits[self.split]
        place = shlex.quote(os.path.commonpath(found.places))
        lists.refuse_unreadable(
            check_images([image.path for image in listed]),
            info,
            f'\nTo list all: {TOOL} check {place} --dataset {info.name}',
            most=5,
        )
        order = self._metainfo.get('classes')
        classes = lists.class_names(found.images, info, order)
        self._metainfo['classes'] = classes
        return [
            dict(img_path=image.path, gt_label=image.label)
            for image in lists.label(listed, classes)
        ]

    def extra_repr(self):
        """Describe dataset, split and source."""
        return [
            f'Dataset: \t{self.info.title}, {self.split}',
            f'Source: \t{self.where}',
        ]
