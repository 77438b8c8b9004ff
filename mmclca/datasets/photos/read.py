# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Read photos with classes and groups from a folder, table, list or config."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mmengine.config import Config

from mmclca.errors import Error
from mmclca.utils.files import read_lines
from mmclca.utils.image_suffixes import PHOTO_SUFFIXES

from ..batches import build_dataset
from ..image_files import files_below, find_images
from .cells import TABLES
from .labeled_images import SPLITS, LabeledImages, recognize_split
from .layout import find_levels
from .lists import read_labels
from .spellings import normalize_name
from .table import read_table

EXAMPLE = 'rose/IMG_1.jpg, tulip/IMG_2.jpg and so on'


def read_photos(
    place: str | os.PathLike,
    labels: str | os.PathLike | None = None,
    groups: str | None = None,
) -> LabeledImages:
    """Find photos and their classes without opening a photo.

    Args:
        place (str | Path): A folder with one folder per class, also within
            ``train``, ``val`` and ``test``; with ``labels`` any folder. A
            table is accepted instead, as ``labels`` in its own folder.
        labels (str | Path, optional): A table (.csv, .tsv, .xlsx, .ods) with
            file and class per row; files are relative to ``place`` or to the
            table. Defaults to None: folders name the classes.
        groups (str, optional): Group of each photo, such as a plant: a table
            column, or a regular expression for the path below ``place``,
            whose first group (else the whole match) is used. Defaults to
            None.

    Returns:
        LabeledImages: Photos in at least two classes.

    Raises:
        FileNotFoundError: If the folder, table or listed files are missing.
        Error: If photos are missing, or there are fewer than two or
            ambiguous classes; names a remedy.
    """
    place = Path(place).absolute()
    if place.is_file() and place.suffix.lower() in TABLES and labels is None:
        place, labels = place.parent, place
    _check_place(place)
    if labels is None:
        found = read_folder(place)
    else:
        found = read_table(Path(labels).absolute(), place, groups)
    found = found if found.groups else _grouped(found, place, groups)
    _check_groups(found, groups)
    return found


def _check_groups(photos: LabeledImages, groups: str | None) -> None:
    """Refuse a single group, which leaves no photo for a test."""
    if len({*(photos.groups or ())}) == 1:
        raise Error(
            f'groups={groups!r} puts all {len(photos)} photos into one '
            f'group, {photos.groups[0]!r}; give what differs between '
            r"plants, such as the expression 'plant\d+'"
        )


def _check_place(place: Path) -> None:
    if place.is_file():
        raise Error(
            f'{place} is a file; give the folder of the photos, with one '
            'folder per class'
        )
    if not place.is_dir():
        raise FileNotFoundError(
            f'folder {place} does not exist; give the folder of the photos'
        )


def _grouped(photos, place: Path, groups: str | None) -> LabeledImages:
    """Group photos by a regular expression, if given."""
    if groups is None:
        return photos
    try:
        pattern = re.compile(groups)
    except re.error as error:
        raise Error(
            f'groups={groups!r} is neither a column of the table nor a valid '
            f'regular expression: {error}'
        ) from error
    names = [os.path.relpath(path, place) for path in photos.paths]
    found = [pattern.search(Path(name).as_posix()) for name in names]
    without = [n for n, m in zip(names, found, strict=True) if not m]
    if without:
        raise Error(
            f'groups={groups!r} does not match {len(without)} of '
            f'{len(names)} paths, such as {", ".join(without[:3])}; write an '
            'expression that matches every path, or name a column of the table'
        )
    first = [(m.groups() and m[1]) or m[0] for m in found]
    return replace(photos, groups=first)


def read_folder(
    folder: Path, suffixes: tuple[str, ...] = PHOTO_SUFFIXES
) -> LabeledImages:
    """Read a folder with one folder per class, sorted by path.

    Class folders may be in ``train``, ``val`` and ``test`` and may contain
    subfolders. Images outside class folders are left out. ``suffixes`` are
    file extensions in lower case.

    Raises:
        Error: If there are no images or fewer than two classes, or the
            splits are ambiguous.
    """
    hidden = []
    files = [Path(path) for path in files_below(str(folder), hidden)]
    parts = {str(path): path.relative_to(folder).parts for path in files}
    images = {
        path: part
        for path, part in parts.items()
        if path.lower().endswith(suffixes)
    }
    _check_images(images, parts, folder, suffixes)
    *levels, notes = find_levels([*images.values()], folder)
    taken, unused = _assign(images, *levels)
    unused |= {
        path: f'ending in {Path(path).suffix.lower() or "nothing"}'
        for path in parts
        if path not in images
    }
    names = [normalize_name(name) or name for _, name in taken.values()]
    classes = sorted({*names})
    _check_classes(classes, images.values(), folder)
    found = LabeledImages.from_names([*taken], names, str(folder), classes)
    splits = [name for name, _ in taken.values()]
    notes = [*notes, *_spelling_notes({*taken.values()})]
    facts = dict(unused=unused, hidden=hidden, notes=notes)
    return replace(found, splits=splits, **facts)


def _assign(images, split: int | None, label: int) -> tuple[dict, dict]:
    """Return split and class by path, and the reasons for unused paths.

    ``images`` maps paths to their parts, ``split`` and ``label`` are positions
    in the parts.
    """
    taken, unused = {}, {}
    for path, part in images.items():
        if len(part) < 2 + max(split or 0, label):
            unused[path] = 'not in a class folder'
        elif split is None:
            taken[path] = '', part[label]
        elif (name := recognize_split(part[split])) in SPLITS:
            taken[path] = name, part[label]
        else:
            unused[path] = 'not in train, val or test'
    return taken, unused


def _spelling_notes(folders: set[tuple[str, str]]) -> Iterator[str]:
    """Describe folders of a split, (split, name), that are read as a class.

    Systems write accents in two ways, and names may have invisible characters.
    """
    numbers = Counter((split, normalize_name(name)) for split, name in folders)
    for (_, name), number in sorted(numbers.items()):
        if number > 1:
            yield (
                f'{number} folders look like {name!r}, in other Unicode '
                'characters, and are read as one class'
            )


def _check_images(images, files, folder: Path, suffixes) -> None:
    if images:
        return
    what = f'no images, but {len(files)} other files' if files else 'no files'
    raise Error(
        f'{folder} has {what}; put the photos of each class into one folder '
        f'({EXAMPLE}); accepted file types: {" ".join(suffixes)}'
    )


def _check_classes(classes, parts, folder: Path) -> None:
    """Refuse fewer than two classes, with a hint from the path parts."""
    if len(classes) > 1:
        return
    if not classes:
        raise Error(
            f'{folder} has {len(parts)} photos but no class folders; put the '
            f'photos of each class into one folder ({EXAMPLE}), or list files '
            'and classes in a table (--labels TABLE)'
        )
    (name,) = classes
    deeper = {part[1] for part in parts if len(part) > 2 and part[0] == name}
    hint = f'; if its folders are the classes, use {folder / name}'
    raise Error(
        f'{folder}: at least two classes are needed, but all photos are in '
        f'the folder {name}; make one folder per class ({EXAMPLE})'
        f'{hint if len(deeper) > 1 else ""}'
    )


def list_images(place: str | os.PathLike) -> LabeledImages:
    """Return the images of a folder or list; classes are optional.

    Args:
        place (str | Path): A folder, whose first folder level names the
            classes; or a ``.txt`` list with lines ``path label`` or ``path``,
            relative to the list. ``classes.txt`` in the same folder names the
            labels.

    Raises:
        FileNotFoundError: If the folder or list does not exist.
        Error: If images or the name of a label are missing.
    """
    place = os.fspath(place)
    if os.path.isdir(place):
        found = _in_folder(place)
    elif not os.path.exists(place):
        raise FileNotFoundError(f'{place} does not exist; check the path')
    elif not (os.path.isfile(place) and place.endswith('.txt')):
        raise Error(f'{place}: expected a folder or a .txt list')
    else:
        found = _in_list(place)
    if not found.paths:
        raise Error(
            f'{place} has no image; accepted file types: '
            f'{" ".join(PHOTO_SUFFIXES)}'
        )
    return found


def _in_folder(folder: str) -> LabeledImages:
    images = {}  # links to a file count once per class
    for path in find_images([folder]):
        parts = Path(path).relative_to(folder).parts
        name = parts[0] if len(parts) > 1 else None
        images.setdefault((os.path.realpath(path), name), path)
    names = [name for _, name in images]
    return LabeledImages.from_names([*images.values()], names, folder)


def _in_list(file: str) -> LabeledImages:
    folder = os.path.dirname(file)
    classes_file = os.path.join(folder, 'classes.txt')
    classes = read_lines(classes_file) if os.path.isfile(classes_file) else []
    rows = read_labels(file, classes, optional=True)
    name_of = classes.__getitem__ if classes else str
    names = [None if label is None else name_of(label) for _, label in rows]
    paths = [os.path.join(folder, path) for path, _ in rows]
    return LabeledImages.from_names(paths, names, file, classes)


def list_split_images(cfg: Config, split: str) -> LabeledImages:
    """Return the images in a split of a config.

    Args:
        cfg (Config): The config.
        split (str): 'train', 'val' or 'test'.

    Raises:
        FileNotFoundError: If its files do not exist.
        Error: If the dataset is missing or empty.
    """
    # mmengine cannot serialize a dataset without images
    dataset = build_dataset(cfg, split, pipeline=[], serialize_data=False)
    infos = [dataset.get_data_info(i) for i in range(len(dataset))]
    if not infos:
        raise Error(f'the {split} dataset of the config is empty')
    classes = dataset.metainfo.get('classes') or ()
    labels = [int(info['gt_label']) for info in infos]
    names = [classes[i] if classes else str(i) for i in labels]
    paths = [info['img_path'] for info in infos]
    return LabeledImages.from_names(paths, names, f'{split} split', classes)
