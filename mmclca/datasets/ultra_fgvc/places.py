# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find an Ultra-FGVC dataset in a folder, in any form."""

import shlex
from pathlib import Path
from typing import NamedTuple

from .forms import READERS, subfolders
from .info import LeafImage, plain
from .lists import checked_images

TOOL = 'python tools/dataset_converters/ultra_fgvc.py'
TRAINED_ON = 'csv', 'released'  # forms that are read without an import


class FoundSet(NamedTuple):
    """The images of a dataset, or a stage of one, as they lie.

    There is one place (a folder or a parquet file), or one for each stage.
    """

    form: str
    places: tuple[Path, ...]
    images: list[LeafImage]

    def __str__(self):
        return f'{self.form} at {", ".join(map(str, self.places))}'


def find_set(folder, info, to_train=False) -> FoundSet:
    """Find a dataset in a folder, in the first form of ``READERS``.

    No image is opened.

    Raises:
        FileNotFoundError: Names the searched folders, or the import command
            if the form cannot be used ``to_train``.
        ValueError: If its lists are wrong.
    """
    folder = Path(folder)
    for form in READERS:
        for parts in ((info,), info.parts):
            found = [_first(folder, part, form) for part in parts]
            if all(found):
                places, images = zip(*found, strict=True)
                images = checked_images(images, parts, info)
                one = FoundSet(form, places, images)
                if to_train and form not in TRAINED_ON:
                    raise FileNotFoundError(_to_import(folder, info, one))
                return one
    looked = '\n'.join(f'  {place}' for place in _folders(folder, info)[:-1])
    raise FileNotFoundError(
        f'{info.title} was not found. Looked in:\n{looked}\nfor train.csv, '
        'anno/train.txt, train/ with a folder per class, or '
        f'{", ".join(part.parquet for part in info.parts)}. Names of folders '
        'and files: docs/data_sets.md. To download it:\n'
        f'  {TOOL} download {info.name} --to {folder}'
    )


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
        names |= {name.removesuffix(key) for name in info.folders}
    return [f for f in subfolders(folder) if plain(f.name) in names - {''}]


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
        f'{info.title} was found as {found}. To train on it, import it once:\n'
        f'  {TOOL} {shlex.join(map(str, words))}'
    )
