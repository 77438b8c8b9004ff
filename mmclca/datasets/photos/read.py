# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Read photos with classes and groups from a folder, table or list."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mmclca.errors import Error
from mmclca.languages import Note
from mmclca.utils.files import read_lines
from mmclca.utils.image_suffixes import PHOTO_SUFFIXES

from ..image_files import files_below, find_images
from .app_archive import is_archive, read_class_names, unpack_archive
from .cells import TABLES
from .labeled_images import SPLITS, LabeledImages, recognize_split
from .layout import Levels, find_levels
from .lists import read_labels
from .plants import match_names
from .spellings import normalize_name
from .spreads import CAPTURE_KINDS, separate_classes
from .table import read_table

EXAMPLE = 'rose/IMG_1.jpg, tulip/IMG_2.jpg and so on'


def read_photos(
    source: str | os.PathLike,
    labels: str | os.PathLike | None = None,
    groups: str | None = None,
) -> LabeledImages:
    """Find photos and their classes without opening a photo.

    Args:
        source (str | Path): A folder with one folder per class, also within
            ``train``, ``val`` and ``test``; with ``labels`` any folder. A
            table is accepted instead, as ``labels`` in its own folder; or
            a ZIP archive of the phone app, which is unpacked next to it.
        labels (str | Path, optional): A table (.csv, .tsv, .xlsx, .ods) with
            file and class per row; files are relative to ``source`` or to the
            table. Defaults to None: folders name the classes.
        groups (str, optional): Group of each photo, such as a plant: a table
            column, or a regular expression for the path below ``source``,
            whose first group (else the whole match) is used. Plants with
            equal names in two classes, such as plant1, are two groups. With
            'day' or 'folder', unless this is a column, photos have no group
            yet, see :func:`group_by_capture`. Defaults to None.

    Returns:
        LabeledImages: Photos in at least two classes.

    Raises:
        FileNotFoundError: If the folder, table or listed files are missing.
        Error: If photos are missing, or there are fewer than two or
            ambiguous classes; names a remedy.
    """
    source = Path(source).absolute()
    if source.is_file() and is_archive(source):
        source = unpack_archive(source)
    if source.is_file() and source.suffix.lower() in TABLES and labels is None:
        source, labels = source.parent, source
    if source.is_file():
        raise Error(
            f'{source} is a file; give the folder of the photos, with one '
            'folder per class'
        )
    if not source.is_dir():
        raise FileNotFoundError(
            f'folder {source} does not exist; give the folder of the photos'
        )
    if labels is None:
        photos = read_folder(source)
    else:
        photos = read_table(Path(labels).absolute(), source, groups)
    is_capture = groups in CAPTURE_KINDS  # known once photos are opened
    if groups is not None and photos.groups is None and not is_capture:
        photos = group_photos(photos, source, groups)
    photos = separate_classes(photos)
    if photos.groups is not None and len({*photos.groups}) == 1:
        # no photo is left for a test
        raise Error(
            f'groups={groups!r} puts all {len(photos)} photos into one '
            f'group, {photos.groups[0]!r}; give what differs between '
            r"plants, such as the expression 'plant\d+'"
        )
    return photos


def group_photos(
    photos: LabeledImages, folder: Path, groups: str
) -> LabeledImages:
    """Group photos by a regular expression for their paths below a folder.

    Raises:
        Error: If the expression is invalid or does not match a path.
    """
    names = [os.path.relpath(path, folder) for path in photos.paths]
    posix_names = [Path(name).as_posix() for name in names]
    matches = match_names(posix_names, groups, 'groups')
    without = [n for n, m in zip(names, matches, strict=True) if m is None]
    if without:
        raise Error(
            f'groups={groups!r} does not match {len(without)} of '
            f'{len(names)} paths, such as {", ".join(without[:3])}; write an '
            'expression that matches every path, or name a column of the table'
        )
    return replace(photos, groups=[m for m in matches if m is not None])


def read_folder(
    folder: Path, suffixes: tuple[str, ...] = PHOTO_SUFFIXES
) -> LabeledImages:
    """Read a folder with one folder per class, sorted by path.

    Class folders may be in ``train``, ``val`` and ``test`` and may contain
    subfolders. Images outside class folders are left out. ``suffixes`` are
    file extensions in lower case. Photos from the phone app get its classes.

    Raises:
        Error: If there are no images or fewer than two classes, the splits
            are ambiguous, or facts from the phone app are damaged.
    """
    hidden = []
    files = [Path(path) for path in files_below(str(folder), hidden)]
    parts = {str(path): path.relative_to(folder).parts for path in files}
    images = {
        path: part
        for path, part in parts.items()
        if path.lower().endswith(suffixes)
    }
    if not images:
        content = f'no images, but {len(parts)} other files'
        raise Error(
            f'{folder} has {content if parts else "no files"}; put the photos '
            f'of each class into one folder ({EXAMPLE}); accepted file types: '
            f'{" ".join(suffixes)}'
        )
    levels = find_levels([*images.values()], folder)
    taken, unused = _assign(images, levels)
    unused |= {
        path: describe_ending(path) for path in parts if path not in images
    }
    by_folder = read_class_names(folder)
    names = [by_folder.get(name, name) for _, name in taken.values()]
    names = [normalize_name(name) or name for name in names]
    classes = sorted({*names})
    _check_classes(classes, images.values(), folder)
    photos = LabeledImages.from_names([*taken], names, str(folder), classes)
    return replace(
        photos,
        splits=[split for split, _ in taken.values()],
        unused=unused,
        hidden=hidden,
        notes=[*levels.notes, *_spelling_notes({*taken.values()})],
    )


def _assign(images: dict, levels: Levels) -> tuple[dict, dict]:
    """Return split and class by path, and the reasons for unused paths.

    ``images`` maps paths to their parts.
    """
    taken, unused = {}, {}
    for path, part in images.items():
        if len(part) < 2 + max(levels.split or 0, levels.label):
            unused[path] = Note('photos.no_class_folder')
        elif levels.split is None:
            taken[path] = '', part[levels.label]
        elif (name := recognize_split(part[levels.split])) in SPLITS:
            taken[path] = name, part[levels.label]
        else:
            unused[path] = Note('photos.no_split')
    return taken, unused


def describe_ending(path: str) -> Note:
    """Describe the name of a file that is not an image."""
    ending = Path(path).suffix.lower()
    if not ending:
        return Note('photos.no_ending')
    return Note('photos.ending', dict(ending=ending))


def _spelling_notes(folders: set[tuple[str, str]]) -> Iterator[Note]:
    """Describe folders of a split, (split, name), that are read as a class.

    Systems write accents in two ways, and names may have invisible characters.
    """
    numbers = Counter((split, normalize_name(name)) for split, name in folders)
    for (_, name), number in sorted(numbers.items()):
        if number > 1:
            values = dict(number=str(number), name=repr(name))
            yield Note('photos.spellings', values)


def _check_classes(classes, parts, folder: Path) -> None:
    """Refuse fewer than two classes, with a hint from the path parts."""
    if len(classes) > 1:
        return
    if not classes:
        raise Error(
            f'{folder} has {len(parts)} photos but no class folders; put the '
            f'photos of each class into one folder ({EXAMPLE}), or list files '
            'and classes in a table (`labels`)'
        )
    (name,) = classes
    deeper = {part[1] for part in parts if len(part) > 2 and part[0] == name}
    hint = f'; if its folders are the classes, use {folder / name}'
    raise Error(
        f'{folder}: at least two classes are needed, but all photos are in '
        f'the folder {name}; make one folder per class ({EXAMPLE})'
        f'{hint if len(deeper) > 1 else ""}'
    )


def list_images(source: str | os.PathLike) -> LabeledImages:
    """Return the images of a folder or list; classes are optional.

    Args:
        source (str | Path): A folder, whose first folder level names the
            classes, or from the phone app; or a ``.txt`` list with lines
            ``path label`` or ``path``, relative to the list. ``classes.txt``
            in the same folder names the labels.

    Raises:
        FileNotFoundError: If the folder or list does not exist.
        Error: If images or the name of a label are missing, or facts from the
            phone app are damaged.
    """
    source = os.fspath(source)
    if os.path.isdir(source):
        by_folder = read_class_names(Path(source))
        paths = {}  # links to a file count once per class
        for path in find_images([source]):
            parts = Path(path).relative_to(source).parts
            name = None
            if len(parts) > 1:
                name = by_folder.get(parts[0], parts[0])
            paths.setdefault((os.path.realpath(path), name), path)
        names = [name for _, name in paths]
        images = LabeledImages.from_names([*paths.values()], names, source)
    elif not os.path.exists(source):
        raise FileNotFoundError(f'{source} does not exist; check the path')
    elif not (os.path.isfile(source) and source.endswith('.txt')):
        raise Error(f'{source}: expected a folder or a .txt list')
    else:
        images = _read_list(source)
    if not images.paths:
        raise Error(
            f'{source} has no image; accepted file types: '
            f'{" ".join(PHOTO_SUFFIXES)}'
        )
    return images


def _read_list(file: str) -> LabeledImages:
    """Read lines ``path label`` or ``path``, and the class names, if any."""
    folder = os.path.dirname(file)
    classes_file = os.path.join(folder, 'classes.txt')
    classes = read_lines(classes_file) if os.path.isfile(classes_file) else []
    rows = read_labels(file, classes, optional=True)
    names = [
        None if label is None else classes[label] if classes else str(label)
        for _, label in rows
    ]
    paths = [os.path.join(folder, path) for path, _ in rows]
    return LabeledImages.from_names(paths, names, file, classes)
