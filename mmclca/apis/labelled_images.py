# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images with the names of their classes, from a folder, a list or a split."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mmengine.config import Config

from mmclca.utils.image_suffixes import PHOTOGRAPH_SUFFIXES
from mmclca.utils.reading import read_lines
from mmclca.utils.terminal import say
from mmclca.visualization.batches import dataset_of

from .sources import find_images


@dataclass
class LabelledImages:
    """Some images and their classes.

    Args:
        paths (list[str]): Their files.
        names (list[str | None]): The class of each, None where it has none.
        source (str): Where they are from.
        order (Sequence[str]): Names of classes in the order of their labels,
            where they have labels. Defaults to ().
    """

    paths: list[str]
    names: list[str | None]
    source: str
    order: Sequence[str] = ()

    @property
    def classes(self) -> list[str]:
        """Names of the classes that have images, else sorted by name."""
        found = {*self.names} - {None}
        known = [name for name in self.order if name in found]
        return known + sorted(found - {*known}, key=_by_number)

    def without(self, unread: dict[int, str]) -> 'LabelledImages':
        """Those that were read; the others are named on stderr.

        Args:
            unread (dict[int, str]): By position why one was not read.
        """
        for position, reason in unread.items():
            line = f'not read: {self.paths[position]}: {reason}'
            say(line, file=sys.stderr)
        keep = [i for i in range(len(self.paths)) if i not in unread]
        paths, names = (
            [values[i] for i in keep] for values in (self.paths, self.names)
        )
        return replace(self, paths=paths, names=names)


def _by_number(name: str) -> tuple[int, str]:
    """Labels without a name as numbers: 9 is before 10."""
    return len(name) if name.isdecimal() else 0, name


def images_at(place: str | os.PathLike) -> LabelledImages:
    """Images of a folder or a list.

    Args:
        place (str | Path): A folder, in which the first folder below names
            the class of what is in it; or a list, a ``.txt`` of lines ``path
            label`` or ``path``, seen from its folder, whose labels are lines
            of a ``classes.txt`` beside it if there is one.

    Raises:
        FileNotFoundError: If there is no such folder or list.
        ValueError: If it has no image, or a label no name.
    """
    place = os.fspath(place)
    if os.path.isdir(place):
        found = _in_folder(place)
    elif os.path.isfile(place) and place.endswith('.txt'):
        found = _in_list(place)
    elif os.path.exists(place):
        raise ValueError(f'{place}: give a folder, or a list ending in .txt')
    else:
        raise FileNotFoundError(f'there is no folder and no list {place}')
    if not found.paths:
        raise ValueError(
            f'{place} has no image; images end in '
            f'{" ".join(PHOTOGRAPH_SUFFIXES)}'
        )
    return found


def _in_folder(folder: str) -> LabelledImages:
    paths = find_images([folder])
    parts = [os.path.relpath(path, folder).split(os.sep) for path in paths]
    names = [part[0] if len(part) > 1 else None for part in parts]
    return LabelledImages(paths, names, folder)


def _in_list(file: str) -> LabelledImages:
    folder = os.path.dirname(file)
    beside = os.path.join(folder, 'classes.txt')
    classes = read_lines(beside) if os.path.isfile(beside) else None
    paths, names = [], []
    for line in filter(None, map(str.strip, read_lines(file))):
        path, _, label = line.rpartition(' ')
        if not path or not label.isdecimal():
            path, label = line, None
        paths.append(os.path.join(folder, path))
        names.append(label)
    if classes:
        names = [_named(name, classes, file) for name in names]
    return LabelledImages(paths, names, file, classes or ())


def _named(label: str | None, classes: list[str], file: str) -> str | None:
    if label is not None and int(label) >= len(classes):
        raise ValueError(
            f'{file} has a label {label}, but the classes.txt beside it names '
            f'{len(classes)} classes, 0 to {len(classes) - 1}'
        )
    return None if label is None else classes[int(label)]


def images_of_split(cfg: Config, split: str) -> LabelledImages:
    """Images of a data set of a config.

    Args:
        cfg (Config): The config.
        split (str): 'train', 'val' or 'test'.

    Raises:
        FileNotFoundError: If its files are not there.
        ValueError: If the config has no such data set, or it is empty.
    """
    # mmengine cannot serialize a data set without images
    dataset = dataset_of(cfg, split, pipeline=[], serialize_data=False)
    infos = [dataset.get_data_info(i) for i in range(len(dataset))]
    if not infos:
        raise ValueError(f'the {split} data set of the config is empty')
    classes = dataset.metainfo.get('classes')
    labels = [int(info['gt_label']) for info in infos]
    names = [classes[i] if classes else str(i) for i in labels]
    paths = [info['img_path'] for info in infos]
    return LabelledImages(paths, names, f'{split} split', classes or ())
