# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The Ultra-FGVC data sets."""

import os
import shlex

from mmengine.logging import print_log
from mmpretrain.datasets import BaseDataset
from mmpretrain.datasets.base_dataset import expanduser

from mmclca.registry import DATASETS
from mmclca.utils.messages import one_of

from ..image_files import check_images
from . import lists
from .info import SPLITS, get_info
from .places import TOOL, find_set


@DATASETS.register_module()
class UltraFGVC(BaseDataset):
    """Ultra-fine-grained leaves: Cotton80, SoyLocal, SoyGene, SoyAgeing
    (whole, or one of its growth stages) and SoyGlobal.

    Yu, Zhao, Gao, Yuan and Xiong, "Benchmark Platform for Ultra-Fine-Grained
    Visual Categorization Beyond Human Performance", ICCV 2021. The published
    numbers train on ``trainval`` and test on ``test``.

    A set is read as the CLCA authors keep it (CSV lists beside images) or as
    it was released (``anno/*.txt`` and ``images/``); ``ultra_fgvc.py import``
    makes the former of image folders and of the parquet mirror.
    ``docs/data_sets.md`` shows each. Which one is found is logged. Classes
    and labels are the same in all of them.

    When the list is loaded, classes and images are counted, and every image
    of the split that is missing, empty, no image or cut short is reported, all
    in one error. For this the first and the last bytes of each file are read,
    and only what looks wrong is decoded. 5,814 files (SoyGlobal) take one or
    two seconds on a local disk. Damage within an image is found by
    ``tools/dataset_converters/ultra_fgvc.py check``, which decodes each.

    Args:
        dataset (str): ``cotton80``, ``soylocal``, ``soygene``, ``soyageing``,
            ``soyageing_r1``, ``_r3``, ``_r4``, ``_r5``, ``_r6`` or
            ``soyglobal``; names as in the papers (``SoyAgeing-R1``) work too.
        split (str): ``train``, ``val``, ``trainval`` (both) or ``test``.
            Defaults to 'train'.
        data_root (str): The folder of the set, or a folder in which the set
            has one of its usual names. Defaults to 'data'.
        metainfo (dict, optional): Meta information; ``classes`` in it gives
            the order of the labels, for a part of a set whose classes are
            named (SoyGene, SoyAgeing). Defaults to None.
        check_counts (bool): Whether classes and images must be as many as in
            the whole set. Defaults to True.
        **kwargs: ``pipeline``, ``test_mode``, ``indices``,
            ``serialize_data``, ``lazy_init`` and ``max_refetch`` of
            ``mmpretrain.datasets.BaseDataset``.

    Raises:
        ValueError: If the set or the split is unknown, or if the
            set is not what it must be, or if images cannot be read.
        FileNotFoundError: If the set or some of its images are missing.
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
        one_of(SPLITS, split=split)
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
        """Read the images and labels of the split.

        Returns:
            list[dict]: ``img_path`` and ``gt_label`` of each image.
        """
        info = self.info
        found = find_set(self.data_root, info, to_train=True)
        print_log(f'{info.title}, {self.split}: {found}', 'current')
        self.where = str(found)
        splits = lists.divide(found.images, info)
        lists.check_split(splits, self.split, info, found, self.check_counts)
        listed = splits[self.split]
        place = shlex.quote(os.path.commonpath(found.places))
        lists.refuse_bad(
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
        """Describe the set, the split and where it was found.

        Returns:
            list[str]: Lines for ``repr``.
        """
        return [
            f'Dataset: \t{self.info.title}, {self.split}',
            f'Source: \t{self.where}',
        ]
