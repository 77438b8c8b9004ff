# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A table of files and classes."""

from collections import defaultdict
from pathlib import Path

from mmclca.utils.image_suffixes import PHOTOGRAPH_SUFFIXES

from ..image_files import files_below
from .columns import find_columns
from .photographs import Photographs
from .splits import split_named
from .spreadsheet import read_cells


def read_table(
    table: Path, place: Path, groups: str | None = None
) -> Photographs:
    """Read a table with a row a photograph.

    Args:
        table (Path): An absolute path; its ending is one of
            :data:`~mmclca.datasets.photographs.spreadsheet.TABLES`.
        place (Path): Where files are looked for, and then beside the table.
        groups (str, optional): A column; anything else gives no groups.
            Defaults to None.

    Returns:
        Photographs: In the order of the table. Images below ``place`` that
        it does not name, and those to which it gives no class or several,
        are left out.

    Raises:
        FileNotFoundError: If the table or files that it names are missing.
        ValueError: If it has no column of files or of classes that is clearly
            one, a split is none, or there are not at least two classes.
        ImportError: If a package that reads it is not installed.
    """
    cells = read_cells(table)
    try:
        columns = find_columns(cells, groups)
        splits = _splits(cells, columns['split'])
    except ValueError as error:
        raise ValueError(f'{table}: {error}') from error
    names = list(cells[columns['label']])
    paths = _find_files(list(cells[columns['file']]), place, table)
    left_out = _left_out(paths, names, place, table)
    # of two equal rows the first
    rows = {path: row for row, path in reversed([*enumerate(paths)])}
    rows = sorted(row for path, row in rows.items() if path not in left_out)
    classes = sorted({names[row] for row in rows})
    _check_classes(classes, columns['label'], table)
    number = {name: i for i, name in enumerate(classes)}
    shown = list(cells[groups]) if groups in cells.columns else None
    return Photographs(
        paths=[paths[row] for row in rows],
        labels=[number[names[row]] for row in rows],
        classes=classes,
        # a cell without a name is a group of its own
        groups=shown and [shown[row] or paths[row] for row in rows],
        splits=[splits[row] for row in rows],
        source=str(table),
        left_out=left_out,
    )


def _find_files(names: list[str], place: Path, table: Path) -> list[str]:
    """Absolute paths of the files that a column names."""
    found = {name: _find(name, place, table.parent) for name in names}
    missing = [name for name, path in found.items() if not path]
    if missing:
        some = ', '.join(name or '(an empty cell)' for name in missing[:3])
        raise FileNotFoundError(
            f'{table} names {len(missing)} files that are not there, such as '
            f'{some}: paths are seen from {place}, or from the folder of the '
            'table'
        )
    return [found[name] for name in names]


def _find(name: str, *folders: Path) -> str:
    """The file of a name, which may be written as on Windows; '' if none."""
    spellings = (name, name.replace('\\', '/'))
    files = (folder / s for folder in folders for s in spellings if name)
    return next((str(file) for file in files if file.is_file()), '')


def _splits(cells, column: str | None) -> list[str]:
    if column is None:
        return [''] * len(cells)
    named = {name: name and split_named(name) for name in cells[column]}
    wrong = [name for name, split in named.items() if split is None]
    if wrong:
        raise ValueError(
            f'{wrong[0]!r} in the column {column!r} is no split: write train, '
            'val, test or nothing, or give the column another title'
        )
    return [named[name] for name in cells[column]]


def _left_out(paths, names, place: Path, table: Path) -> dict[str, str]:
    """By path why a file is not taken."""
    classes = defaultdict(set)
    for path, name in zip(paths, names, strict=True):
        classes[path].add(name)
    left_out = {
        path: f'not in {table.name}'
        for path in files_below(str(place))
        if path not in classes and path.lower().endswith(PHOTOGRAPH_SUFFIXES)
    }
    for path, found in classes.items():
        if '' in found:
            left_out[path] = f'without a class in {table.name}'
        elif len(found) > 1:
            left_out[path] = f'of several classes in {table.name}'
    return left_out


def _check_classes(classes, label: str, table: Path) -> None:
    if len(classes) < 2:
        found = f'only {classes[0]!r}' if classes else 'nothing'
        raise ValueError(
            f'one class cannot be told from others: {table} has {found} in '
            f'its column {label!r}'
        )
