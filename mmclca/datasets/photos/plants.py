# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find the plant per photo by its path, or in a table."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.messages import join_first

from .table import read_column


@dataclass(frozen=True)
class Plants:
    """Plants in photos.

    Args:
        names (list[str]): Plant per photo. A photo without one is a plant
            of its own, named by its path.
        without (list[str]): Paths without a plant.
    """

    names: list[str]
    without: list[str]


def find_plants(
    paths: Sequence[str],
    folder: str | os.PathLike,
    plant: str,
    table: str | os.PathLike | None = None,
) -> Plants:
    """Find the plant of each photo.

    Args:
        paths (Sequence[str]): Photos.
        folder (str | Path): Folder that contains them.
        plant (str): A column of ``table``; or a regular expression for the
            path below ``folder``, whose first group (else the whole match) is
            used.
        table (str | Path, optional): Table (.csv, .tsv, .xlsx, .ods) with
            file and plant per row; files are relative to ``folder`` or to the
            table. Defaults to None.

    Returns:
        Plants: The plants.

    Raises:
        FileNotFoundError: If the table is missing.
        Error: If no photo has a plant, the expression is invalid, or the
            column of files is ambiguous.
    """
    column = None
    if table is not None:
        column = read_column(Path(table).absolute(), Path(folder), plant)
    names = [Path(os.path.relpath(path, folder)).as_posix() for path in paths]
    if column is None:
        matches = match_names(names, plant, 'plant')
        problem = f'`plant={plant}` does not match any of {len(names)} paths'
        fix = 'write an expression that matches every path'
    else:
        matches = [column.get(os.path.realpath(path)) for path in paths]
        problem = f'the column {plant!r} of {table} has none of the photos'
        fix = 'list their files'
    if not any(matches):
        raise Error(f'{problem}, such as {join_first(names, 3)}; {fix}')
    pairs = [*zip(paths, matches, strict=True)]
    return Plants(
        names=[match or path for path, match in pairs],
        without=[path for path, match in pairs if not match],
    )


def match_names(
    names: Sequence[str], expression: str, setting: str
) -> list[str | None]:
    """Match names with a regular expression, the value of a setting.

    Return the first group of each match (else the whole match), or None.

    Raises:
        Error: If the expression is invalid.
    """
    try:
        pattern = re.compile(expression)
    except re.error as error:
        raise Error(
            f'{setting}={expression!r} is neither a column of the table nor '
            f'a valid regular expression: {error}'
        ) from error
    matches = [pattern.search(name) for name in names]
    return [m and ((m.groups() and m[1]) or m[0]) for m in matches]
