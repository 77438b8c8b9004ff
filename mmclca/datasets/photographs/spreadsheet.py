# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tables as files: their cells as texts, whatever program wrote them."""

from pathlib import Path

from mmclca.utils.csv_files import from_cell
from mmclca.utils.extras import require
from mmclca.utils.image_suffixes import PHOTOGRAPH_SUFFIXES
from mmclca.utils.reading import read_bytes

# endings, and what reads them beside pandas
TABLES = {'.csv': (), '.tsv': (), '.xlsx': ('openpyxl',), '.ods': ('odf',)}
_SEPARATORS = ',;\t|'


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
        said = ' '.join(str(error).split())
        raise ValueError(f'{table} cannot be read: {said}') from error
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
    """The table below its titles, if the first row are titles."""
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
