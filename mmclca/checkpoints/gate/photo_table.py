# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Photos listed in photographs.csv, and whether to open their files."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.files import parse_rows, read_bytes

from .folders import is_below

# SHA-256 in photographs.csv; empty if the column is missing
_SHA256 = re.compile('([0-9a-f]{64})?')


def parse_photo_table(content: bytes) -> list['PhotoRow']:
    """Parse photographs.csv.

    Raises:
        ValueError: If it is not a table, or a column or cell is invalid.
    """
    rows = parse_rows(content, 'path', 'class', 'used')
    return [PhotoRow.from_cells(row) for row in rows]


@dataclass(frozen=True)
class PhotoRow:
    """Row of photographs.csv.

    Args:
        path (str): Photo, which may be any file; see :class:`PhotoFiles`.
        label (str): Class name.
        group (str): Group name, empty without.
        split (str): 'train', 'val' or 'test'.
        is_used (bool): Whether the photo was used for training.
        reason (str): Why a photo was not used.
        prediction (str): Cross-validated prediction, empty if not tested.
        label_probability (float, optional): Probability of ``label``.
        prediction_probability (float, optional): Probability of
            ``prediction``.
        sha256 (str): Digest of the file, empty if unknown.
        day (str): Day of the photo as in 2023-07-14, empty if unknown.
        camera (str): Camera, empty if unknown.
    """

    path: str
    label: str
    group: str = ''
    split: str = ''
    is_used: bool = True
    reason: str = ''
    prediction: str = ''
    label_probability: float | None = None
    prediction_probability: float | None = None
    sha256: str = ''
    day: str = ''
    camera: str = ''

    @classmethod
    def from_cells(cls, cells: Mapping[str, str | None]) -> 'PhotoRow':
        """Parse the cells of a row by column.

        Raises:
            Error: If a cell is invalid.
        """
        sha256 = cells.get('digest') or ''
        if not _SHA256.fullmatch(sha256):
            raise Error(f'digest {sha256:.80} is not a SHA-256')
        if not cells['path']:
            raise Error('a row without a path')
        if cells.get('predicted') and not (
            cells.get('p_given') and cells.get('p_predicted')
        ):
            raise Error('a prediction without probabilities')
        return cls(
            path=cells['path'],
            label=cells['class'] or '',
            group=cells.get('group') or '',
            split=cells.get('split') or '',
            is_used=cells['used'] == 'True',
            reason=cells.get('why_not') or '',
            prediction=cells.get('predicted') or '',
            label_probability=_parse_probability(cells.get('p_given')),
            prediction_probability=_parse_probability(
                cells.get('p_predicted')
            ),
            sha256=sha256,
            day=cells.get('day') or '',
            camera=cells.get('camera') or '',
        )

    @property
    def is_held_out(self) -> bool:
        """Whether the photo is in a val or test folder."""
        return not self.is_used and self.split in ('val', 'test')


def _parse_probability(cell: str | None) -> float | None:
    if not cell:
        return None
    try:
        probability = float(cell)
    except ValueError as error:
        raise Error(f'probability {cell:.80} is not a number') from error
    if not 0 <= probability <= 1:  # false for NaN, too
        raise Error(f'probability {cell:.80} is not between 0 and 1')
    return probability


@dataclass(frozen=True)
class PhotoFiles:
    """Photos with their SHA-256, and whether to open their files.

    A model folder from elsewhere may list any file of this computer.
    Therefore a listed photo is opened only if it is in a folder named by the
    user, has been confirmed, or has the listed content. Photos that are not
    listed may be opened: the user has named them.

    Args:
        sha256 (Mapping[str, str]): SHA-256 by path, '' if unknown. Defaults
            to {}.
        listed_paths (frozenset[str]): Photos listed in a model folder.
            Defaults to an empty set.
        confirmed_paths (frozenset[str]): Listed photos that the user has
            named, too. Defaults to an empty set.
        folders (tuple[Path, ...]): Folders with photos that may be opened.
            Defaults to ().
    """

    sha256: Mapping[str, str] = field(default_factory=dict)
    listed_paths: frozenset[str] = frozenset()
    confirmed_paths: frozenset[str] = frozenset()
    folders: tuple[Path, ...] = ()

    @classmethod
    def from_rows(cls, rows: Iterable[PhotoRow], *folders: Path):
        """Collect the photos of a model, with folders named by the user."""
        digests = {row.path: row.sha256 for row in rows}
        return cls(digests, frozenset(digests), folders=folders)

    def confirm(self, paths: Iterable[str]) -> 'PhotoFiles':
        """Allow photos that the user has named."""
        confirmed = self.confirmed_paths.union(paths)
        return replace(self, confirmed_paths=confirmed)

    def may_open(self, path: str) -> bool:
        """Return whether a photo may be opened, whatever its content is."""
        return (
            path not in self.listed_paths
            or path in self.confirmed_paths
            or any(is_below(path, folder) for folder in self.folders)
        )

    def may_show(self, path: str) -> bool:
        """Return whether a photo may be opened or has the listed content.

        Reads the file in the latter case.
        """
        if self.may_open(path):
            return True
        # neither an address nor a pipe, which would be read
        return os.path.isfile(path) and not self.is_changed(path)

    def is_changed(self, path: str) -> bool:
        """Return whether a listed photo lacks the listed content.

        Reads the file. Photos that are not listed are never changed.
        """
        return (
            path in self.listed_paths
            and compute_sha256(path) != self.sha256[path]
        )


def compute_sha256(path: str) -> str | None:
    """Return the SHA-256 of a file, or None if it is unreadable."""
    try:
        return sha256(read_bytes(path)).hexdigest()
    except OSError:
        return None
