# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write tables for spreadsheet programs."""

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

from .extras import require
from .files import replace_bytes, write_rows

NEEDED = 'openpyxl'


def write_spreadsheet(path: str | Path, rows: Iterable[Iterable]) -> None:
    """Write a .xlsx file, or for any other ending a .csv file.

    Raises:
        ImportError: If openpyxl is needed, but not installed.
    """
    is_sheet = Path(path).suffix.lower() == '.xlsx'
    write = write_sheet if is_sheet else write_rows
    write(path, rows)


def write_sheet(path: str | Path, rows: Iterable[Iterable]) -> None:
    """Write a .xlsx file atomically; no text becomes a formula.

    Characters that the format does not allow become question marks.

    Raises:
        ImportError: If openpyxl is not installed.
    """
    require(NEEDED, extra='tables')
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    book = Workbook(write_only=True)
    sheet = book.create_sheet()

    def to_cell(value):
        if not isinstance(value, str):
            return value
        allowed = ILLEGAL_CHARACTERS_RE.sub('?', value)
        cell = WriteOnlyCell(sheet, allowed.encode(errors='replace').decode())
        cell.data_type = 's'  # 'f' for a text that begins with =
        return cell

    for row in rows:
        sheet.append([*map(to_cell, row)])
    content = BytesIO()
    book.save(content)
    replace_bytes(Path(path), content.getvalue())
