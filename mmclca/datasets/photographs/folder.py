# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A folder a class, with splits above the classes or without."""

from pathlib import Path

from mmclca.utils.image_suffixes import PHOTOGRAPH_SUFFIXES

from ..image_files import files_below
from .photographs import Photographs

# by the names that people give to them
SPLITS = dict(
    train='train',
    training='train',
    val='val',
    valid='val',
    validation='val',
    dev='val',
    test='test',
    testing='test',
)
EXAMPLE = 'rose/IMG_1.jpg, tulip/IMG_2.jpg and so on'


def read_folder(
    folder: Path, suffixes: tuple[str, ...] = PHOTOGRAPH_SUFFIXES
) -> Photographs:
    """Read a folder with one folder a class in it.

    The first level below it, or below its folders ``train``, ``val`` and
    ``test``, gives the classes; below that may be more folders. Hidden files
    are passed over, images beside the folders of the classes are left out.

    Args:
        folder (Path): Paths of the photographs begin with it.
        suffixes (tuple[str, ...]): How their names end, in any case.
            Defaults to ``PHOTOGRAPH_SUFFIXES``.

    Returns:
        Photographs: Sorted by path.

    Raises:
        ValueError: If there are not at least two classes.
    """
    files = [Path(path) for path in files_below(str(folder))]
    parts = {str(path): path.relative_to(folder).parts for path in files}
    images = {
        path: part
        for path, part in parts.items()
        if path.lower().endswith(suffixes)
    }
    _check_images(images, parts, folder, suffixes)
    split = _is_split(images.values())
    taken, left_out = _assign(images, split)
    left_out |= {
        path: f'ending in {Path(path).suffix.lower() or "nothing"}'
        for path in parts
        if path not in images
    }
    classes = sorted({name for _, name in taken.values()})
    _check_classes(classes, images.values(), folder)
    number = {name: i for i, name in enumerate(classes)}
    return Photographs(
        paths=list(taken),
        labels=[number[name] for _, name in taken.values()],
        classes=classes,
        groups=None,
        splits=[name for name, _ in taken.values()],
        source=str(folder),
        left_out=left_out,
    )


def _is_split(parts) -> bool:
    """Return whether the first level are splits: ``train`` may also be a
    class."""
    names = {part[0] for part in parts if len(part) > 1}
    splits = {split_named(name) for name in names}
    whole = splits == {'train'} or splits & {'val', 'test'}
    return (
        'train' in splits
        and bool(whole)
        and all(len(part) > 2 for part in parts if _trains(part))
    )


def _trains(part) -> bool:
    return len(part) > 1 and split_named(part[0]) == 'train'


def _assign(images, split) -> tuple[dict, dict]:
    """By path the split and the class; by path why others are left out."""
    taken, left_out = {}, {}
    for path, part in images.items():
        name = split_named(part[0]) if split else ''
        if name is None:
            left_out[path] = 'beside train, val and test'
        elif len(part) < 2 + split:
            left_out[path] = 'beside the folders of the classes'
        else:
            taken[path] = name, part[split]
    return taken, left_out


def _check_images(images, files, folder: Path, suffixes) -> None:
    if images:
        return
    what = f'no image, but {len(files)} other files' if files else 'no files'
    raise ValueError(
        f'{folder} has {what}: put the photographs of each class into a '
        f'folder there ({EXAMPLE}); they end in '
        f'{" ".join(suffixes)}'
    )


def _check_classes(classes, parts, folder: Path) -> None:
    if len(classes) > 1:
        return
    if not classes:
        raise ValueError(
            f'{folder} has {len(parts)} photographs but no folders: put those '
            f'of each class into a folder there ({EXAMPLE}), or name their '
            'classes in a table (labels=)'
        )
    (name,) = classes
    deeper = {part[1] for part in parts if len(part) > 2 and part[0] == name}
    hint = f'; if its folders are the classes, give {folder / name}'
    raise ValueError(
        f'one class cannot be told from others: all photographs in {folder} '
        f'are in the folder {name}; make a folder for each class ({EXAMPLE})'
        f'{hint if len(deeper) > 1 else ""}'
    )


def split_named(name: str) -> str | None:
    """Return the split that a folder or a cell of a table names, in any
    case."""
    return SPLITS.get(name.strip().lower())
