# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Where an Ultra-FGVC set lies in a folder, and in which form."""

import shlex
from pathlib import Path
from typing import NamedTuple

from .forms import READERS, subfolders
from .info import LeafImage, plain
from .lists import checked_images

TOOL = 'python tools/dataset_converters/ultra_fgvc.py'
TRAINED_ON = 'csv', 'released'  # forms that are read without an import


class FoundSet(NamedTuple):
    """The images of a set, or a stage of one, as they lie.

    There is one place (a folder or a parquet file), or one for each stage.
    """

    form: str
    places: tuple[Path, ...]
    images: list[LeafImage]

    def __str__(self):
        return f'{self.form} at {", ".join(map(str, self.places))}'


def find_set(folder, info, forms=tuple(READERS)) -> FoundSet:
    """Find a set in a folder, in the first of some forms that is there.

    No image is opened.

    Raises:
        FileNotFoundError: Saying where it was looked for, and for what.
        ValueError: If its lists are wrong.
    """
    folder = Path(folder)
    found = _find(folder, info, forms)
    if found:
        return found
    other = _find(folder, info, READERS)
    advice = _to_import if other else _not_found
    raise FileNotFoundError(advice(folder, info, other))


def _find(folder, info, forms):
    for form in forms:
        for parts in ((info,), info.parts):
            found = [_first(folder, part, form) for part in parts]
            if all(found):
                places, images = zip(*found, strict=True)
                images = checked_images(images, parts, info)
                return FoundSet(form, places, images)
    return None


def _first(folder, info, form):
    """Return the first place that has a set, and its images; None if none
    has."""
    for place in _folders(folder, info):
        if form == 'parquet':
            place = _parquet_file(place, info)
        images = READERS[form](place, info) if place else ()
        if images:
            return place, images
    return None


def _folders(folder, info):
    """Folders named for the set, at most two below ``folder``, then it."""
    first = _named(folder, info)
    below = [f for sub in first for f in _named(sub, info)]
    # where the tool, and `hf download`, puts a parquet file
    return [*below, *first, folder, folder / 'datasets' / 'ufgvc']


def _named(folder, info):
    names = {*info.folders}
    if len(info.stages) == 1:  # is often kept in the folder of the whole
        key = info.stages[0].lower()
        names |= {name.removesuffix(key) for name in names - {key}}
    return [f for f in subfolders(folder) if plain(f.name) in names]


def _parquet_file(folder, info):
    if folder.suffix == '.parquet' and folder.is_file():
        return folder
    names = {plain(Path(info.parquet).stem), *info.folders} - {''}
    names |= {f'{name}dataset' for name in names}
    files = sorted(folder.glob('*.parquet'))
    return next((file for file in files if plain(file.stem) in names), None)


def _to_import(folder, info, found):
    home = folder.parent if folder.is_file() else folder
    target = home / info.name
    if target.exists():  # is looked for two folders deep
        target = target / info.name
    words = 'import', folder, '--dataset', info.name, '--to', target
    return (
        f'{info.title} is here as {found}. To train on it, import it once:\n'
        f'  {TOOL} {shlex.join(map(str, words))}'
    )


def _not_found(folder, info, _):
    looked = '\n'.join(f'  {place}' for place in _folders(folder, info)[:-1])
    parquet = ', '.join(part.parquet for part in info.parts)
    return (
        f'{info.title} was not found. Looked in:\n{looked}\n'
        'for one of:\n'
        '  train.csv, val.csv, test.csv and a folder of images\n'
        '  anno/train.txt, anno/test.txt and images/ (released archives; '
        'SoyAgeing: in a folder R1, R3, ... each)\n'
        f'and, to import: train/, val/, test/ with a folder a class; '
        f'{parquet}\n'
        f'Folders may be called {", ".join(info.folders)}, in any case. '
        'How to get the set: docs/data_sets.md, or\n'
        f'  {TOOL} download {info.name} --to {folder}'
    )
