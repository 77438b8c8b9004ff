# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Read the cells of a table or spreadsheet, and detect its encoding."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from io import StringIO
from pathlib import Path

from mmclca.errors import Error
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
    known: Collection[str] = (),
    is_file: Callable[[str], object] = lambda name: False,
) -> tuple[dict[str, list[str]], list[str]]:
    """Read a table, or the first sheet of a spreadsheet.

    Text is Unicode or in a Windows encoding, separated by commas, semicolons,
    tabs or bars. ``known`` file names help to detect the encoding; cells with
    a separator are joined if ``is_file`` accepts them.

    Return stripped cells by column title, and a note if the encoding was
    guessed. Titles are 'column 1' and so on if the first row names an image.

    Raises:
        FileNotFoundError: If the file does not exist.
        Error: If the format is not supported or a line is invalid.
        ImportError: If a package for the format is not installed.
    """
    kind = table.suffix.lower()
    if not table.is_file():
        raise FileNotFoundError(
            f'table {table} does not exist; check the path'
        )
    if kind not in TABLES:
        raise Error(
            f'{table} is not a table; accepted types: {" ".join(TABLES)}'
        )
    require(*TABLES[kind], extra='tables')
    try:
        if TABLES[kind]:
            return _columns(_rows_of_sheet(table), '', is_file), []
        text, notes = _decoded(table, known)
        return _columns(*_rows_of_text(text, is_file), is_file), notes
    except Exception as error:  # three packages raise different types
        reason = ' '.join(str(error).split())
        raise Error(f'cannot read {table}: {reason}') from error


def _rows_of_sheet(table: Path) -> list[tuple[int, list[str]]]:
    import pandas as pd

    rows = pd.read_excel(table, dtype=str, keep_default_na=False, header=None)
    return [*enumerate(rows.fillna('').to_numpy().tolist(), 1)]


def _decoded(table: Path, known: Collection[str]) -> tuple[str, list[str]]:
    """Read a text; return a note, too, if its encoding was guessed."""
    content = read_bytes(table)
    even, odd = (content[i::2].count(0) for i in (0, 1))
    encoding = 'utf-16-be' if even > odd else 'utf-16-le'
    encoding = encoding if 8 * max(even, odd) > len(content) else 'utf-8'
    encoding = 'iso2022_jp' if b'\x1b$' in content else encoding
    with suppress(UnicodeDecodeError):
        text = content.decode(encoding).lstrip('\ufeff')
        return text.rstrip('\0\x1a'), []
    encoding = guess_encoding(content, known, WINDOWS)
    return content.decode(encoding), [
        f'{table.name} is not in UTF-8, read as {encoding}; save it as UTF-8 '
        'if names are wrong'
    ]


def _rows_of_text(
    text: str, is_file: Callable
) -> tuple[list[tuple[int, list[str]]], str]:
    """Return numbered rows, and the separator.

    The separator maximizes the rows of equal length, then the image names.
    """
    line = re.match(r'\s*"?sep=(.)"?[^\S\n]*\r?\n', text, re.IGNORECASE)
    text = '\n' * bool(line) + text[line.end() if line else 0 :]
    separators = line[1] if line else _SEPARATORS
    found = {x: _split(text, x, is_file) for x in separators}

    def rating(separator: str) -> tuple[int, int]:
        rows = [row for _, row in found[separator]]
        lengths = Counter(len(row) for row in rows if len(row) > 1)
        images = sum(is_image(cell) for row in rows for cell in row)
        return max(lengths.values(), default=0), images

    best = max(found, key=rating)
    return found[best], best


def _split(
    text: str, separator: str, is_file: Callable
) -> list[tuple[int, list[str]]]:
    """Return rows with line numbers, without comments."""
    reader = csv.reader(StringIO(text, newline=''), delimiter=separator)
    try:
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise Error(f'line {reader.line_num}: {error}') from error
    return [
        (line, row)
        for line, row in rows
        if ''.join(row).lstrip()[:1] != '#' or any(map(is_file, row))
    ]


def is_image(cell: str) -> bool:
    """Return whether a name has the extension of an image."""
    return cell.strip().lower().endswith(PHOTO_SUFFIXES)


def _columns(rows, separator: str, is_file: Callable) -> dict[str, list[str]]:
    """Return the columns by title."""
    rows = [(line, row) for line, row in rows if any(map(str.strip, row))]
    if not rows:
        raise Error('the table is empty')
    titles = [normalize_name(cell) for cell in rows[0][1]]
    if any(map(is_image, titles)):
        ((width, _),) = Counter(len(row) for _, row in rows).most_common(1)
        titles = [''] * width
    else:
        rows = rows[1:]
    lines = [_of_width(*x, len(titles), separator, is_file) for x in rows]
    columns = {}
    for i, title in enumerate(titles):
        cells = _tidy([line[i] for line in lines])
        if title and titles.count(title) > 1:
            title = f'{title} (column {i + 1})'
        if title or any(cells):
            columns[title or f'column {i + 1}'] = cells
    return columns


def _of_width(line, row, width: int, separator, is_file) -> list[str]:
    """Pad a row to ``width`` cells, or join the parts of one name.

    Raises:
        Error: If the row is ambiguous; names the line.
    """
    filled = [i + 1 for i, cell in enumerate(row) if cell.strip()]
    row = (row + [''] * width)[: max(width, *filled)]
    if len(row) > width:
        end = len(row) - width + 1  # length of a name in parts
        joined = [separator.join(row[i : i + end]) for i in range(width)]
        found = [i for i in range(width) if is_file(joined[i].strip())]
        if len(found) != 1:
            raise Error(
                f'line {line} has {len(row)} cells, expected {width}; put '
                f'names that contain {separator} in double quotes'
            )
        row[found[0] : found[0] + end] = [joined[found[0]]]
    return [from_cell(cell.strip()) for cell in row]


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
