# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Datasets with one folder per class, and ImageNet-V2."""

# before mmpretrain.datasets, to hide a line that it prints
from mmclca.registry import DATASETS

# isort: split
from os.path import expanduser
from pathlib import Path, PurePath

from mmengine.fileio import join_path
from mmpretrain.datasets import CustomDataset, ImageNet
from mmpretrain.datasets.custom import find_folders, get_samples

from mmclca.errors import Error
from mmclca.utils.files import read_lines
from mmclca.utils.messages import join_first

from .image_files import is_system
from .photos.labeled_images import recognize_split
from .photos.lists import read_labels
from .photos.spellings import normalize_name


@DATASETS.register_module()
class ClassFolders(CustomDataset):
    """mmpretrain's ``CustomDataset`` that matches folders to classes by name.

    An image's label is the position of its folder in the class list,
    which may contain further classes. Hidden and system folders are skipped,
    and so are blank lines and a byte order mark in lists.

    Args:
        **settings: ``CustomDataset`` settings.

    Raises:
        FileNotFoundError: If the folder or list does not exist.
        Error: If a folder is missing in the class list, a name repeats,
            a line has an invalid label, or images are missing.
    """

    def _compat_classes(self, metainfo, classes):
        if isinstance(classes, str):
            lines = map(str.strip, read_lines(expanduser(classes)))
            classes = [*filter(None, lines)]
        return super()._compat_classes(metainfo, classes)

    def is_valid_file(self, filename):
        system = any(map(is_system, PurePath(filename).parts))
        return super().is_valid_file(filename) and not system

    def load_data_list(self):
        """List path and label of all images."""
        if not self.ann_file:
            labels = self._match_folders() if self.with_label else None
            self.folder_to_idx = labels
            rows, _ = get_samples(self.img_prefix, labels, self.is_valid_file)
        elif self.with_label:
            rows = read_labels(self.ann_file, self.CLASSES)
        else:
            rows = filter(None, map(str.strip, read_lines(self.ann_file)))
        rows = list(rows)
        if not rows:
            raise Error(
                f'{self.ann_file or self.img_prefix} has no images; use class '
                f'folders with {", ".join(sorted(self.extensions))} files, or '
                'an ann_file of lines "path label"'
            )
        if not self.with_label:
            return [dict(img_path=join_path(self.img_prefix, x)) for x in rows]
        return [
            dict(img_path=join_path(self.img_prefix, path), gt_label=label)
            for path, label in rows
        ]

    def _match_folders(self) -> dict[str, int]:
        folders, _ = find_folders(self.img_prefix)
        folders = [x for x in folders if not is_system(x)]
        named = self._metainfo.get('classes') or not folders
        if not named and all(map(recognize_split, folders)):
            raise Error(
                f'{self.img_prefix} contains the splits {join_first(folders)} '
                'instead of classes; set data_root (or data_prefix) to one of '
                'them'
            )
        names = self._metainfo.setdefault('classes', tuple(folders))
        labels = {normalize_name(name): i for i, name in enumerate(names)}
        lacking = [x for x in folders if normalize_name(x) not in labels]
        if lacking or len(labels) < len(names):
            raise Error(
                f'{self.img_prefix}: the class list ({join_first(names)}) '
                f'must contain each folder ({join_first(folders)}) once; '
                f'missing in the list: {join_first(lacking) or "none"}'
            )
        return {name: labels[normalize_name(name)] for name in folders}


@DATASETS.register_module()
class ImageNetV2(ImageNet):
    """New test images for the classes of ImageNet, in folders 0 to 999.

    Recht et al., "Do ImageNet Classifiers Generalize to ImageNet?", ICML
    2019.

    Args:
        data_root (str): Folder of the class folders.
        **settings: Settings for mmpretrain's ``ImageNet``, such as
            ``pipeline``.

    Raises:
        FileNotFoundError: If images are missing.
    """

    def load_data_list(self) -> list[dict]:
        """List path and label of all images."""
        root = Path(self.img_prefix)
        images = [
            dict(img_path=str(file), gt_label=int(file.parent.name))
            for file in sorted(root.glob('*/*'))
            if file.parent.name.isdigit()
            and file.suffix.lower() in self.extensions
        ]
        if not images:
            raise FileNotFoundError(
                f'no images found in {root}/0 to {root}/999; unpack '
                'ImageNet-V2 (matched-frequency) there'
            )
        return images


def check_folder_labels(dataset, head) -> None:
    """Check the labels of a ``CustomDataset`` against the head.

    Raises:
        Error: If a label is out of range, or mmpretrain would number
            the folders in another order than the classes.
    """
    if not isinstance(dataset, CustomDataset) or not dataset.with_label:
        return
    names, folders = dataset.CLASSES, vars(dataset).get('folder_to_idx')
    labels = [] if names else dataset.get_gt_labels()
    if max(labels, default=0) >= head.num_classes:
        raise Error(
            f'{dataset.ann_file} has label {max(labels)}, but '
            f'model.head.num_classes={head.num_classes}; correct either'
        )
    built_in = type(dataset).METAINFO.get('classes')
    by_place = folders and not isinstance(dataset, ClassFolders)
    if by_place and names not in (built_in, tuple(folders)):
        raise Error(
            f'{dataset.img_prefix}: mmpretrain numbers the folders '
            f'{join_first(folders)} in this order, but the classes are '
            f"{join_first(names)}; use type='mmclca.ClassFolders'"
        )
