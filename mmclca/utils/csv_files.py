# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tables as CSV, of which a spreadsheet runs nothing."""

import csv
from collections.abc import Iterable
from io import StringIO
from pathlib import Path

from .atomic_write import replace_bytes
from .reading import read_bytes

# a spreadsheet computes cells that begin so
_SIGNS = ('=', '+', '-', '@', '\t', '\r')


def to_cell(value):
    """A value as it is written: before texts like formulas comes a quote."""
    return f"'{value}" if _is_formula(value) else value


def from_cell(value):
    """A value as it was before :func:`to_cell`."""
    return value[value[0] == "'" :] if _is_formula(value) else value


def _is_formula(value) -> bool:
    # behind quotes, too, so that the way back is clear
    return isinstance(value, str) and value.lstrip("'").startswith(_SIGNS)


def write_rows(path: str | Path, rows: Iterable[Iterable]) -> None:
    """Write a table, in one step."""
    text = StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerows(map(to_cell, row) for row in rows)
    content = text.getvalue().encode(errors='surrogateescape')
    replace_bytes(Path(path), content)


def read_rows(path: str | Path) -> list[dict[str, str]]:
    """Rows of a table, by the titles in its first one."""
    text = read_bytes(path).decode('utf-8-sig', 'surrogateescape')
    rows = csv.DictReader(StringIO(text, newline=''))
    return [{key: from_cell(row[key]) for key in row} for row in rows]
