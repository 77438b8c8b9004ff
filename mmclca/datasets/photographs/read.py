# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""From what a user names to photographs with classes and groups."""

import os
import re
from dataclasses import replace
from pathlib import Path

from .folder import read_folder
from .photographs import Photographs
from .spreadsheet import TABLES
from .table import read_table


def read_photographs(
    place: str | os.PathLike,
    labels: str | os.PathLike | None = None,
    groups: str | None = None,
) -> Photographs:
    """Find photographs and their classes; none of them is opened.

    Args:
        place (str | Path): A folder with one folder a class in it, or with
            such folders in ``train``, ``val`` and ``test``; with ``labels``
            any folder. A table in place of the folder stands for ``labels``,
            in its own folder.
        labels (str | Path, optional): A table (.csv, .tsv, .xlsx, .ods) with
            a row a photograph, its file and its class; files are seen from
            ``place`` or from the table. Defaults to None: folders name the
            classes.
        groups (str, optional): What photographs of one thing, such as a
            plant, have in common: a column of the table, or a regular
            expression that is searched for in each path below ``place``, of
            which the first group counts, else the whole match.
            Defaults to None.

    Returns:
        Photographs: At least two classes of them.

    Raises:
        FileNotFoundError: If there is no such folder or table, or files that
            the table names are missing.
        ValueError: If there are no photographs or fewer than two classes, or
            it is not clear which; says what to do.
    """
    place = Path(place).absolute()
    if place.is_file() and place.suffix.lower() in TABLES and labels is None:
        place, labels = place.parent, place
    _check_place(place)
    if labels is None:
        return _grouped(read_folder(place), place, groups)
    found = read_table(Path(labels).absolute(), place, groups)
    return found if found.groups else _grouped(found, place, groups)


def _check_place(place: Path) -> None:
    if place.is_file():
        raise ValueError(
            f'{place} is a file: give the folder of the photographs, with one '
            'folder a class in it'
        )
    if not place.is_dir():
        raise FileNotFoundError(
            f'there is no folder {place}: give the folder of the photographs'
        )


def _grouped(photographs, place: Path, groups: str | None) -> Photographs:
    """Photographs with groups by a regular expression, if there is one."""
    if groups is None:
        return photographs
    try:
        pattern = re.compile(groups)
    except re.error as error:
        raise ValueError(
            f'groups={groups!r} is no column of a table and no regular '
            f'expression: {error}'
        ) from error
    names = [os.path.relpath(path, place) for path in photographs.paths]
    found = [pattern.search(Path(name).as_posix()) for name in names]
    without = [n for n, m in zip(names, found, strict=True) if not m]
    if without:
        raise ValueError(
            f'groups={groups!r} is not found in {len(without)} of '
            f'{len(names)} paths, such as {", ".join(without[:3])}: write an '
            'expression that every path has, or name a column of the table'
        )
    return replace(photographs, groups=[_first_group(m) for m in found])


def _first_group(match: re.Match) -> str:
    return (match.groups() and match[1]) or match[0]
