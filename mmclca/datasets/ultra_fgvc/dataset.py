# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Load a split of an Ultra-FGVC dataset."""

# before mmpretrain.datasets, to hide a line that it prints
from mmclca.registry import DATASETS

# isort: split
import os
from pathlib import Path

from mmengine.logging import print_log
from mmpretrain.datasets import BaseDataset
from mmpretrain.datasets.base_dataset import expanduser

from mmclca.errors import Error
from mmclca.utils.messages import check_choice

from ..image_files import check_images
from . import lists
from .info import SPLITS, UltraFGVCInfo, get_info
from .layouts import LeafImage, read_csv


@DATASETS.register_module()
class UltraFGVC(BaseDataset):
    """Ultra-fine-grained leaf datasets of Yu et al.

    Cotton80, SoyLocal, SoyGene, SoyAgeing (whole, or one growth stage) and
    SoyGlobal. Yu, Zhao, Gao, Yuan and Xiong, "Benchmark Platform for
    Ultra-Fine-Grained Visual Categorization Beyond Human Performance", ICCV
    2021. Published results train on ``trainval`` and test on ``test``.

    The dataset is read from the CSV lists of the CLCA authors or of
    ``ultra_fgvc.py import``, which converts all published layouts, see
    ``docs/data_sets.md``. Classes and labels do not depend on the layout.

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
        data_root (str): Folder with the CSV lists, or its parent folder if it
            has the name of the dataset, such as ``cotton80``. Defaults to
            'data'.
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
        dataset: str,
        split: str = 'train',
        data_root: str = 'data',
        metainfo: dict | None = None,
        check_counts: bool = True,
        **kwargs,
    ):
        check_choice(SPLITS, split=split)
        if not isinstance(data_root, str | os.PathLike):
            raise Error(
                f'data_root={data_root!r} must be a folder, not a '
                f'{type(data_root).__name__}'
            )
        self.info = get_info(dataset)
        self.split = split
        self.check_counts = check_counts
        super().__init__(
            ann_file='',
            metainfo=metainfo,
            data_root=expanduser(data_root),
            **kwargs,
        )

    def load_data_list(self) -> list[dict]:
        """List ``img_path`` and ``gt_label`` of the images in the split."""
        info = self.info
        images = _read_lists(Path(self.data_root), info)
        splits = lists.divide(images, info)
        lists.check_split(
            splits,
            self.split,
            info,
            'to use a part of the dataset, set `check_counts=False`',
            complete=self.check_counts,
        )
        selected = splits[self.split]
        print_log(
            f'{info.title}, {self.split}: {len(selected)} images', 'current'
        )
        problems = check_images([image.path for image in selected])
        lists.refuse_unreadable(problems, info, limit=5)
        order = self._metainfo.get('classes')
        classes = lists.list_classes(images, info, order)
        self._metainfo['classes'] = classes
        return [
            dict(img_path=image.path, gt_label=image.label)
            for image in lists.label_images(selected, classes)
        ]

    def extra_repr(self) -> list[str]:
        """Describe dataset, split and source."""
        return [
            f'Dataset: \t{self.info.title}, {self.split}',
            f'Source: \t{self.data_root}',
        ]


def _read_lists(root: Path, info: UltraFGVCInfo) -> list[LeafImage]:
    """Read the CSV lists in a folder, or in its subfolder for the dataset.

    Raises:
        FileNotFoundError: If there are no lists.
        Error: If the lists are invalid.
    """
    # a stage is also listed in the whole SoyAgeing
    names = dict.fromkeys((info.name, info.name.partition('_')[0]))
    folders = [root, *(root / name for name in names)]
    for folder in folders:
        if images := lists.read_part(folder, info, read_csv):
            return images
    raise FileNotFoundError(
        f'{info.title} was not found: `data_root` must have the lists '
        'train.csv, val.csv or train_val.csv, and test.csv; looked in '
        f'{", ".join(map(str, folders))}. Download and import the dataset as '
        'described in docs/data_sets.md'
    )
