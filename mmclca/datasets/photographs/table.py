# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tables of files and classes: which column is which, and whose rows."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from mmclca.utils.extras import require
from mmclca.utils.files import from_cell, read_bytes
from mmclca.utils.image_suffixes import PHOTOGRAPH_SUFFIXES

from ..image_files import files_below
from .photographs import Photographs, split_named

FILE, LABEL = 'file', 'class'  # these win over all others
FILES = {
    *('filename', 'file_name', 'filepath', 'file_path', 'path'),
    *('image', 'image_path', 'image_name', 'img', 'img_path'),
    *('photo', 'photograph', 'picture'),
}
LABELS = {
    *('class_name', 'label', 'category', 'target', 'name'),
    *('species', 'cultivar', 'variety'),
}
SPLIT_TITLES = {'split', 'set', 'subset', 'partition'}
# endings, and what reads them beside pandas
TABLES = {'.csv': (), '.tsv': (), '.xlsx': ('openpyxl',), '.ods': ('odf',)}
_SEPARATORS = ',;\t|'


def read_table(
    table: Path, place: Path, groups: str | None = None
) -> Photographs:
    """Read a table with a row a photograph.

    Args:
        table (Path): An absolute path; its ending is one of
            ``TABLES``.
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
    taken, named = [paths[row] for row in rows], [names[row] for row in rows]
    classes = sorted({*named})
    _check_classes(classes, columns['label'], table)
    shown = list(cells[groups]) if groups in cells.columns else None
    return replace(
        Photographs.named(taken, named, str(table), classes),
        # a cell without a name is a group of its own
        groups=shown and [shown[row] or paths[row] for row in rows],
        splits=[splits[row] for row in rows],
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
    """Return the file of a name, which may be written as on Windows; '' if
    none."""
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


def read_cells(table: Path):
    """Read a table; of a spreadsheet with several sheets the first one.

    Args:
        table (Path): The file. A text may be UTF-8, UTF-16 or of the Windows
            of Western Europe, with commas, semicolons, tabs or bars.

    Returns:
        pandas.DataFrame: Texts without spaces around them, empty where there
        is nothing. The columns are the titles in the first row; 'column 1'
        and so on where it already names an image.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is of another kind, or cannot be read.
        ImportError: If a package that reads it is not installed.
    """
    kind = table.suffix.lower()
    if not table.is_file():
        raise FileNotFoundError(f'there is no table {table}')
    if kind not in TABLES:
        raise ValueError(f'{table} is no table; {" ".join(TABLES)} are read')
    require('pandas', *TABLES[kind], extra='tables')
    try:
        cells = _read(table, bool(TABLES[kind]))
    except Exception as error:  # of three packages, each with its own
        reason = ' '.join(str(error).split())
        raise ValueError(f'{table} cannot be read: {reason}') from error
    cells = cells.fillna('').map(lambda cell: from_cell(cell.strip()))
    return _with_titles(cells[(cells != '').any(axis=1)])


def _read(table: Path, is_spreadsheet: bool):
    import pandas as pd

    options = dict(dtype=str, keep_default_na=False, header=None)
    if is_spreadsheet:
        return pd.read_excel(table, **options)
    content = read_bytes(table)
    encoding = _encoding(content)
    first = content.decode(encoding).lstrip().partition('\n')[0]
    separator = max(_SEPARATORS, key=first.count)
    return pd.read_csv(table, sep=separator, encoding=encoding, **options)


def _encoding(content: bytes) -> str:
    if content[:2] in (b'\xff\xfe', b'\xfe\xff'):
        return 'utf-16'
    try:
        content.decode('utf-8-sig')
    except UnicodeDecodeError:
        return 'cp1252'
    return 'utf-8-sig'


def _with_titles(cells):
    """Return the table below its titles, if the first row are titles."""
    numbers = [f'column {i + 1}' for i in range(cells.shape[1])]
    first = list(cells.iloc[0]) if len(cells) else []
    if any(cell.lower().endswith(PHOTOGRAPH_SUFFIXES) for cell in first):
        return cells.set_axis(numbers, axis=1)
    titles = [title or n for title, n in zip(first, numbers, strict=False)]
    twice = [title for title in titles if titles.count(title) > 1]
    titles = [
        f'{title} ({n})' if title in twice else title
        for title, n in zip(titles, numbers, strict=False)
    ]
    return cells.iloc[1:].set_axis(titles or numbers, axis=1)


def find_columns(cells, groups: str | None = None) -> dict[str, str | None]:
    """Tell by titles and content what the columns of a table are.

    Returns:
        dict[str, str | None]: The titles of ``file``, ``label`` and
        ``split``, the last one None where there is none.

    Raises:
        ValueError: If that is not clear; says which to rename.
    """
    titles = [title for title in cells.columns if title != groups]
    endings = [title for title in titles if _holds_files(cells[title])]
    file = _one_of(endings or titles, FILE, FILES, cells, 'files')
    others = [title for title in titles if title not in (file, *endings)]
    splits = [title for title in others if title.lower() in SPLIT_TITLES]
    others = [title for title in others if title not in splits[:1]]
    label = _one_of(others, LABEL, LABELS, cells, 'classes')
    return dict(file=file, label=label, split=next(iter(splits), None))


def _holds_files(column) -> bool:
    """Return whether most cells end as images do."""
    return column.str.lower().str.endswith(PHOTOGRAPH_SUFFIXES).mean() > 0.5


def _one_of(titles, first: str, known: set[str], cells, what: str) -> str:
    """Return the title that has the first name, or alone has one that is
    known, or is alone."""
    for names in ({first}, known, {title.lower() for title in titles}):
        found = [title for title in titles if title.lower() in names]
        if len(found) == 1:
            return found[0]
        if found:
            break
    raise ValueError(
        f'it is not clear which column has the {what}, of '
        f'{", ".join(map(repr, cells.columns))}: give it the title {first!r}'
    )
