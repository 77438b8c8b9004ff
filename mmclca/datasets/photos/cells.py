# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Read the cells of a table or spreadsheet, and detect its encoding."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from mmclca.errors import Error
from mmclca.languages import Note
from mmclca.utils.extras import require
from mmclca.utils.files import from_cell, read_bytes
from mmclca.utils.image_suffixes import PHOTO_SUFFIXES

from .encodings import WINDOWS, guess_encoding
from .spellings import normalize_name

# file extensions, and the packages required to read them
TABLES = {'.csv': (), '.tsv': ()}
TABLES |= {'.xlsx': ('pandas', 'openpyxl'), '.ods': ('pandas', 'odf')}
_SEPARATORS = ',;\t|'


def read_cells(
    table: Path,
    file_names: Collection[str] = (),
    is_file: Callable[[str], object] = lambda name: False,
) -> tuple[dict[str, list[str]], list[Note]]:
    """Read a table, or the first sheet of a spreadsheet.

    Text is Unicode or in a Windows encoding, separated by commas, semicolons,
    tabs or bars. ``file_names`` help to detect the encoding; cells with
    a separator are joined if ``is_file`` accepts them.

    Return stripped cells by column title, and a note if the encoding was
    guessed. Titles are 'column 1' and so on if the first row names an image.

    Raises:
        FileNotFoundError: If the file does not exist.
        Error: If the format is not supported or a line is invalid.
        ImportError: If a package for the format is not installed.
    """
    suffix = table.suffix.lower()
    if not table.is_file():
        raise FileNotFoundError(
            f'table {table} does not exist; check the path'
        )
    if suffix not in TABLES:
        raise Error(
            f'{table} is not a table; accepted types: {" ".join(TABLES)}'
        )
    require(*TABLES[suffix], extra='tables')
    try:
        if TABLES[suffix]:
            return _build_columns(_read_sheet(table), '', is_file), []
        content, notes = _decode(table, file_names)
        separator, rows = _parse_rows(content, is_file)
        return _build_columns(rows, separator, is_file), notes
    except Error as error:
        raise Error(f'cannot read {table}: {error}') from error


class Row(NamedTuple):
    """Cells of a table row, and its line number from 1."""

    line: int
    cells: list[str]


def _read_sheet(table: Path) -> list[Row]:
    """Read the first sheet of a spreadsheet.

    Raises:
        Error: If the file is not a spreadsheet or is damaged.
    """
    import pandas as pd

    try:
        sheet = pd.read_excel(
            table, dtype=str, keep_default_na=False, header=None
        )
    except Exception as error:  # each package of a format has own types
        raise Error(' '.join(str(error).split())) from error
    rows = sheet.fillna('').to_numpy().tolist()
    return [Row(line, cells) for line, cells in enumerate(rows, 1)]


def _decode(
    table: Path, file_names: Collection[str]
) -> tuple[str, list[Note]]:
    """Read a text; return a note, too, if its encoding was guessed."""
    content = read_bytes(table)
    even, odd = (content[i::2].count(0) for i in (0, 1))
    encoding = 'utf-16-be' if even > odd else 'utf-16-le'
    encoding = encoding if 8 * max(even, odd) > len(content) else 'utf-8'
    encoding = 'iso2022_jp' if b'\x1b$' in content else encoding
    with suppress(UnicodeDecodeError):
        decoded = content.decode(encoding).lstrip('\ufeff')
        return decoded.rstrip('\0\x1a'), []
    encoding = guess_encoding(content, file_names, WINDOWS)
    values = dict(table=table.name, encoding=encoding)
    return content.decode(encoding), [Note('photos.encoding', values)]


def _parse_rows(content: str, is_file: Callable) -> tuple[str, list[Row]]:
    """Return the separator and the rows of a text.

    The separator maximizes the rows of equal length, then the image names.
    """
    line = re.match(r'\s*"?sep=(.)"?[^\S\n]*\r?\n', content, re.IGNORECASE)
    content = '\n' * bool(line) + content[line.end() if line else 0 :]
    separators = line[1] if line else _SEPARATORS
    rows_by_separator = {x: _split(content, x, is_file) for x in separators}

    def rate(separator: str) -> tuple[int, int]:
        rows = [row.cells for row in rows_by_separator[separator]]
        lengths = Counter(len(row) for row in rows if len(row) > 1)
        images = sum(is_image(cell) for row in rows for cell in row)
        return max(lengths.values(), default=0), images

    best = max(rows_by_separator, key=rate)
    return best, rows_by_separator[best]


def _split(content: str, separator: str, is_file: Callable) -> list[Row]:
    """Split a text into rows, without comments."""
    reader = csv.reader(StringIO(content, newline=''), delimiter=separator)
    try:
        rows = [Row(reader.line_num, cells) for cells in reader]
    except csv.Error as error:
        raise Error(f'line {reader.line_num}: {error}') from error
    return [
        row
        for row in rows
        if ''.join(row.cells).lstrip()[:1] != '#'
        or any(map(is_file, row.cells))
    ]


def is_image(cell: str) -> bool:
    """Return whether a name has the extension of an image."""
    return cell.strip().lower().endswith(PHOTO_SUFFIXES)


def _build_columns(
    rows: list[Row], separator: str, is_file: Callable
) -> dict[str, list[str]]:
    """Return the columns by title."""
    rows = [row for row in rows if any(map(str.strip, row.cells))]
    if not rows:
        raise Error('the table is empty')
    titles = [normalize_name(cell) for cell in rows[0].cells]
    if any(map(is_image, titles)):
        lengths = Counter(len(row.cells) for row in rows)
        ((width, _),) = lengths.most_common(1)
        titles = [''] * width
    else:
        rows = rows[1:]
    lines = [_fit_row(row, len(titles), separator, is_file) for row in rows]
    columns = {}
    for i, title in enumerate(titles):
        cells = _tidy([line[i] for line in lines])
        if title and titles.count(title) > 1:
            title = f'{title} (column {i + 1})'
        if title or any(cells):
            columns[title or f'column {i + 1}'] = cells
    return columns


def _fit_row(
    row: Row, width: int, separator: str, is_file: Callable
) -> list[str]:
    """Pad a row to ``width`` cells, or join the parts of one name.

    Raises:
        Error: If the row is ambiguous; names the line.
    """
    filled = [i + 1 for i, cell in enumerate(row.cells) if cell.strip()]
    cells = (row.cells + [''] * width)[: max(width, *filled)]
    if len(cells) > width:
        end = len(cells) - width + 1  # length of a name in parts
        joined = [separator.join(cells[i : i + end]) for i in range(width)]
        starts = [i for i in range(width) if is_file(joined[i].strip())]
        if len(starts) != 1:
            raise Error(
                f'line {row.line} has {len(cells)} cells, expected {width}; '
                f'put names that contain {separator} in double quotes'
            )
        cells[starts[0] : starts[0] + end] = [joined[starts[0]]]
    return [from_cell(cell.strip()) for cell in cells]


def _tidy(column: list[str]) -> list[str]:
    """Remove quotes, decimals and times added to a column by spreadsheets."""
    filled = [cell for cell in column if cell]
    if all(cell.startswith("'") for cell in filled):
        return [cell.strip("'") for cell in column]
    if all(re.fullmatch(r'[+-]?\d+(\.0*)?', cell) for cell in filled):
        return [cell.partition('.')[0] for cell in column]
    if all(re.fullmatch(r'\d{4}-\d\d-\d\d( 00:00:00)?', x) for x in filled):
        return [cell[:10] for cell in column]
    return column
