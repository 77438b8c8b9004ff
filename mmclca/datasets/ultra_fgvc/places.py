# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Where an Ultra-FGVC set lies in a folder, and in which form."""

import shlex
from pathlib import Path
from typing import NamedTuple

from .forms import READERS, csv_files, subfolders
from .info import UltraFGVCInfo, plain

TOOL = 'python tools/dataset_converters/ultra_fgvc.py'
TRAINED_ON = 'csv', 'released'  # forms that are read without an import


class SetPlace(NamedTuple):
    """Where a set, or a stage of one, lies: a folder or a parquet file."""

    form: str
    info: UltraFGVCInfo
    path: Path

    def __str__(self):
        return f'{self.form} at {self.path}'


def find_set(folder, info, forms=tuple(READERS)) -> list[SetPlace]:
    """Find a set in a folder, in the first of some forms that is there.

    Returns:
        list[SetPlace]: One, or one for each stage of SoyAgeing.

    Raises:
        FileNotFoundError: Saying where it was looked for, and for what.
    """
    folder = Path(folder)
    found = _find(folder, info, forms)
    if not found:
        others = _find(folder, info, READERS)
        raise FileNotFoundError(
            _to_import(folder, info, others)
            if others
            else _not_found(folder, info)
        )
    return found


def _find(folder, info, forms):
    for form in forms:
        for parts in ((info,), info.parts):
            found = [_place_of(part, folder, form) for part in parts]
            if all(found):
                return found
    return []


def _place_of(info, folder, form):
    paths = (_FINDERS[form](place, info) for place in _folders(folder, info))
    found = (SetPlace(form, info, path) for path in paths if path)
    return next(found, None)


def _folders(folder, info):
    """Folders named for the set, at most two below ``folder``, then it."""
    first = _named(folder, info)
    below = [f for sub in first for f in _named(sub, info)]
    # where the tool, and `hf download`, puts a parquet file
    return [*below, *first, folder, folder / 'datasets' / 'ufgvc']


def _named(folder, info):
    names = {*info.folders, *_container_names(info)}
    return [f for f in subfolders(folder) if plain(f.name) in names]


def _container_names(info):
    # A stage of SoyAgeing is often kept in the folder of the whole.
    if len(info.stages) != 1:
        return ()
    key = info.stages[0].lower()
    return tuple(n.removesuffix(key) for n in info.folders if n != key)


def _csv(folder, info):
    return folder if csv_files(folder, info) else None


def _released(folder, info):
    lists = (folder / 'anno' / f'{split}.txt' for split in ('train', 'test'))
    return folder if any(file.is_file() for file in lists) else None


def _class_folders(folder, info):
    splits = (subfolders(folder / split) for split in ('train', 'test'))
    return folder if any(splits) else None


def _parquet(folder, info):
    if folder.suffix == '.parquet' and folder.is_file():
        return folder
    names = {plain(Path(info.parquet).stem), *info.folders} - {''}
    files = (
        file
        for file in sorted(folder.glob('*.parquet'))
        if {plain(file.stem), plain(file.stem).removesuffix('dataset')} & names
    )
    return next(files, None)


_FINDERS = dict(
    csv=_csv, released=_released, folders=_class_folders, parquet=_parquet
)


def _to_import(folder, info, places):
    home = folder.parent if folder.is_file() else folder
    target = home / info.name
    if target.exists():  # is looked for two folders deep
        target = target / info.name
    found = '; '.join(map(str, places))
    words = 'import', folder, '--dataset', info.name, '--to', target
    return (
        f'{info.title} is here as {found}. To train on it, import it once:\n'
        f'  {TOOL} {shlex.join(map(str, words))}'
    )


def _not_found(folder, info):
    """Say where a set was looked for, and what would have been found."""
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
