# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pieces of configs by their names: those of a user first, then ours."""

import os
from functools import cache
from pathlib import Path

from mmengine.config import Config

from mmclca.model_index import home
from mmclca.utils.known_names import not_one_of

# kinds of pieces: the folders that they are in
MODELS, DATASETS, RECIPES, RUNTIME = 'models', 'datasets', 'schedules', '.'
# what names leave out: `vit-base-p16` is clca-evit_vit-base-p16.py
MODEL = 'clca-evit_'
# files that our data sets share begin so; they are no data sets
SHARED = 'leaves_'


def names(kind: str, folders: tuple[Path, ...] = ()) -> list[str]:
    """Names of the pieces that there are, sorted.

    Args:
        kind (str): ``MODELS``, ``DATASETS`` or ``RECIPES``.
        folders (tuple[Path, ...]): A user's folders. Defaults to ().
    """
    return sorted(_pieces(kind, folders))


def find(kind: str, name: str, folders: tuple[Path, ...] = ()) -> Path:
    """The file of a piece.

    Args:
        kind (str): See :func:`names`.
        name (str): Its name, or that of its file without ``.py``.
        folders (tuple[Path, ...]): A user's folders, which come before ours.
            Defaults to ().

    Raises:
        ValueError: If there is none; names those that there are.
    """
    pieces = _pieces(kind, folders)
    if name in pieces:
        return pieces[name]
    of_stem = (file for file in pieces.values() if file.stem == name)
    if file := next(of_stem, None):
        return file
    looked_in = ', '.join(map(str, (*folders, home() / 'configs')))
    raise ValueError(
        f'{not_one_of(name, names(kind, folders))}; looked in {looked_in}'
    )


def read(file: Path) -> dict:
    """The settings of a piece; its ``custom_imports`` are imported.

    Args:
        file (Path): Its file.

    Raises:
        ValueError: If it is no Python.
    """
    # pieces of data sets read the variable
    return _parsed(file, os.environ.get('MMCLCA_DATA')).to_dict()


@cache
def _parsed(file: Path, data: str | None) -> Config:
    try:
        return Config.fromfile(file)
    except SyntaxError as error:
        raise ValueError(
            f'{file}, line {error.lineno}: {error.msg}'
        ) from error


@cache
def _pieces(kind: str, folders: tuple[Path, ...]) -> dict[str, Path]:
    """Files by the names of the pieces; the first folder counts."""
    found = {}
    for folder in (*folders, home() / 'configs'):
        for file in _files(folder, kind):
            found.setdefault(_name(kind, file.stem), file)
    return found


def _files(folder: Path, kind: str) -> list[Path]:
    base = folder / '_base_'
    files = [*(base if base.is_dir() else folder).joinpath(kind).glob('*.py')]
    if kind == MODELS:  # whole configs, too
        files += folder.glob('*.py')
    hidden = ('_', SHARED) if kind == DATASETS else '_'
    return sorted(f for f in files if not f.stem.startswith(hidden))


def _name(kind: str, stem: str) -> str:
    if kind == MODELS:
        return stem.removeprefix(MODEL)
    name, _, size = stem.rpartition('_')
    return name if kind == DATASETS and name and size.isdigit() else stem
