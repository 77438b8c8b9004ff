# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Table of drawn photos: written without classes, read with classes."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mmclca.datasets.photos.cells import read_cells
from mmclca.datasets.photos.spellings import normalize_name
from mmclca.datasets.photos.table import FileNames
from mmclca.errors import Error
from mmclca.languages import Note
from mmclca.utils.messages import join_first
from mmclca.utils.spreadsheets import write_spreadsheet

MIN_LABELS = 10  # fewer say next to nothing
# a stratum has ``photos``; the table has the ``drawn`` ones
COLUMNS = ('file', 'class', 'stratum', 'drawn', 'photos')
_, LABEL, STRATUM, DRAWN, PHOTOS = COLUMNS


@dataclass(frozen=True)
class DrawnPhoto:
    """Photo to label, and its stratum.

    Args:
        path (str): Photo; in a table, relative to the photo folder.
        stratum (int): Stratum number, from 1.
        drawn (int): Drawn photos in the stratum.
        photos (int): Photos in the stratum.
        label (str): Class; empty without a label.
    """

    path: str
    stratum: int
    drawn: int
    photos: int
    label: str = ''


@dataclass(frozen=True)
class LabeledTable:
    """Labels in a table with drawn photos.

    Args:
        source (Path): The table.
        photos (list[DrawnPhoto]): Drawn photos, with paths of their files.
        not_drawn (list[str]): Photos with a label that were not drawn.
        notes (list[Note]): Assumptions about the encoding.
    """

    source: Path
    photos: list[DrawnPhoto]
    not_drawn: list[str]
    notes: list[Note]

    @property
    def labeled(self) -> list[DrawnPhoto]:
        """Drawn photos with a label."""
        return [photo for photo in self.photos if photo.label]

    def check(self) -> None:
        """Raise an ``Error`` if there are too few labels."""
        number = len(self.labeled)
        if number < MIN_LABELS:
            raise Error(
                f'{self.source} has {number} labels for {self.drawn} drawn '
                f'photos, needs at least {MIN_LABELS}; fill the column '
                f'{LABEL!r}'
            )

    @property
    def drawn(self) -> int:
        """Number of drawn photos, also in deleted rows."""
        return sum({x.stratum: x.drawn for x in self.photos}.values())

    @property
    def total(self) -> int | None:
        """All photos at the draw; None if rows were deleted."""
        if len(self.photos) < self.drawn:
            return None
        return sum({x.stratum: x.photos for x in self.photos}.values())


def write_survey_table(path: Path, photos: Sequence[DrawnPhoto]) -> None:
    """Write drawn photos as a table for labels, .csv or .xlsx.

    Raises:
        ImportError: If .xlsx needs a package that is not installed.
        OSError: If it cannot be written.
    """
    rows = [[x.path, x.label, x.stratum, x.drawn, x.photos] for x in photos]
    write_spreadsheet(path, [[*COLUMNS], *rows])


def check_survey_table(path: Path) -> None:
    """Refuse to overwrite labels, or another kind of file.

    Raises:
        Error: If the file exists and is not a survey table without labels.
    """
    if not path.exists():
        return
    fix = 'choose another `out`'
    try:
        cells, _ = read_cells(path)
    except (Error, UnicodeDecodeError):
        cells = {}
    if not {*COLUMNS} <= cells.keys():
        raise Error(f'{path} already exists and is not a survey table; {fix}')
    if any(cells[LABEL]):
        number = sum(map(bool, cells[LABEL]))
        raise Error(f'{path} already has {number} labels; {fix}')


def read_survey_table(path: Path, folder: Path) -> LabeledTable:
    """Read drawn photos with their classes from a table.

    Rows without a stratum were not drawn.

    Args:
        path (Path): The table, .csv, .tsv, .xlsx or .ods.
        folder (Path): Folder with all photos.

    Returns:
        LabeledTable: The labels.

    Raises:
        FileNotFoundError: If the table or a labeled photo is missing.
        Error: If the table is not a survey table, a photo has two classes,
            or a stratum has more photos than were drawn.
    """
    files = FileNames(folder, path.parent)
    names = [Path(x).name for x in files.paths if not Path(x).name.isascii()]
    cells, notes = read_cells(path, names[:50], files.find)
    cells = {title.casefold(): column for title, column in cells.items()}
    missing = [title for title in COLUMNS if title not in cells]
    if missing:
        raise Error(
            f'{path} is not a survey table: the column {missing[0]!r} is '
            f'missing among {join_first(map(repr, cells), 5)}; fill the '
            f'column {LABEL!r} of the table that survey wrote'
        )
    photos, not_drawn = {}, []
    for row in zip(*(cells[title] for title in COLUMNS), strict=True):
        name, label = row[0], normalize_name(row[1])
        if not (label or any(row[2:])):
            continue
        file = files.find(name)
        if label and not file:
            raise FileNotFoundError(
                f'{path}: {name or "(an empty cell)"} has a label but is '
                f'missing in {folder}; restore it'
            )
        if not any(row[2:]):
            not_drawn.append(name)
            continue
        photo = _parse_row(path, file or name, label, row[2:])
        previous = photos.setdefault(photo.path, photo)
        if previous != photo:
            raise Error(
                f'{path}: two rows of {name} differ, such as in '
                f'{previous.label!r} and {label!r}; keep one'
            )
    _check_strata(path, list(photos.values()))
    return LabeledTable(path, [*photos.values()], not_drawn, notes)


def _parse_row(
    path: Path, file: str, label: str, numbers: Sequence[str]
) -> DrawnPhoto:
    """Parse the integers in a row."""
    if not all(x.isdecimal() and int(x) for x in numbers):
        raise Error(
            f'{path}: {file} has {", ".join(numbers)} in the columns '
            f'{STRATUM}, {DRAWN}, {PHOTOS}, expected numbers; restore them '
            'from the table that survey wrote'
        )
    stratum, drawn, photos = map(int, numbers)
    return DrawnPhoto(file, stratum, drawn, photos, label)


def _check_strata(path: Path, photos: Sequence[DrawnPhoto]) -> None:
    """Refuse strata with more photos than were drawn."""
    sizes = defaultdict(set)
    for photo in photos:
        sizes[photo.stratum].add((photo.drawn, photo.photos))
    for stratum, count in Counter(x.stratum for x in photos).items():
        drawn = min(sizes[stratum])[0]
        if count > drawn or len(sizes[stratum]) > 1:
            raise Error(
                f'{path}: stratum {stratum} has {count} photos, expected '
                f'{drawn}; remove rows that were added'
            )
