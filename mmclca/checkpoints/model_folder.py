# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Model folders of ``mmclca fit``: file names and typed content.

A folder may come from other people. Its files are read without following
links, fit.json and photographs.csv are parsed and checked here, and nothing
that they name is opened.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from os.path import expanduser
from pathlib import Path
from typing import TypeVar

from mmclca.errors import Error
from mmclca.utils.messages import warn

from .earlier_versions import FILE_NAMES, convert_record
from .gate.folders import (
    find_newest,
    finish_replacing,
    read_file,
    refuse_links,
)
from .gate.json_parsing import load_json_object
from .gate.photo_table import PhotoRow, parse_photo_table

MODEL, PROBE, THRESHOLD = 'model.pth', 'probe.pth', 'threshold.json'
RECORD, TABLE, REPORT = 'fit.json', 'photographs.csv', 'report.html'
CV_PROBABILITIES = 'cv_probabilities.safetensors'
PICTURES = 'pictures.safetensors'
WEB = 'web'  # folder of the exported web app
PREVIOUS = 'previous'  # folder of the model before the last change
# model files, replaced together
FILES = (MODEL, THRESHOLD, PROBE, RECORD, TABLE, CV_PROBABILITIES, REPORT)
# other entries, written by fit and export
OTHERS = (
    '.draft',
    '.lock',
    'features',
    'log.txt',
    'training',
    PICTURES,
    WEB,
    PREVIOUS,
)
WEIGHTS = ('.bin', '.ckpt', '.npz', '.pt', '.pth', '.safetensors')


def is_checkpoint(name) -> bool:
    """Return whether a name belongs to a weight file or model folder."""
    return isinstance(name, str | PathLike) and (
        str(name).lower().endswith(WEIGHTS) or is_fitted(name)
    )


def is_fitted(path: str | PathLike) -> bool:
    """Return whether a path is a model folder.

    Raises:
        Error: If the model or its folder is a link.
    """
    return find_newest(Path(expanduser(path)), MODEL).is_file()


def prepare_writing(folder: Path) -> None:
    """Prepare a model folder for writing.

    An interrupted file replacement is completed, and files get their present
    names.

    Raises:
        Error: If an entry written by fit or export is a link.
    """
    names = (*FILES, *FILE_NAMES)
    refuse_links(folder, (*names, *OTHERS))
    finish_replacing(folder, names)
    convert_names(folder)
    convert_names(folder / '.draft')
    if (folder / PREVIOUS).is_dir():
        finish_replacing(folder / PREVIOUS, names)
        convert_names(folder / PREVIOUS)


def convert_names(folder: Path) -> None:
    """Give the files of an earlier version in a model folder their new names.

    Other folders stay as they are.
    """
    for old, new in FILE_NAMES.items():
        if (folder / RECORD).is_file() and not (folder / new).exists():
            with suppress(FileNotFoundError):
                (folder / old).rename(folder / new)


def find_model_file(path: str | PathLike) -> str:
    """Return the weight file in a model folder; keep other paths.

    Raises:
        FileNotFoundError: If the folder contains no model, or the path does
            not exist.
    """
    expanded = Path(expanduser(path))
    if is_fitted(expanded):
        return str(find_newest(expanded, MODEL))
    if expanded.is_dir() or not (
        expanded.suffix or expanded.is_file() or '://' in str(path)
    ):
        raise _not_found(path)
    return str(path)


def find_threshold_file(path: str | PathLike) -> Path | None:
    """Return the threshold file of a model folder, None without.

    If fit has written one that is gone, a warning says so.
    """
    if not is_fitted(path):
        return None
    folder = ModelFolder.open(path)
    threshold = find_newest(folder.path, THRESHOLD)
    if threshold.is_file() and threshold.stat().st_size:
        return threshold
    if folder.has_threshold():
        warn(
            f'photos of unknown classes are not flagged: {threshold} is '
            'missing; copy it from the original model folder'
        )
    return None


def _not_found(path: str | PathLike) -> FileNotFoundError:
    fit = f'create a model with: python -m mmclca fit PHOTOS --out {path}'
    if Path(expanduser(path)).is_dir():
        return FileNotFoundError(
            f'{path} does not contain model.pth; pass the checkpoint file, '
            f'or {fit}'
        )
    return FileNotFoundError(
        f'{path} does not exist, neither as a checkpoint nor as a model '
        f'folder; check the path, or {fit}'
    )


@contextmanager
def damaged_file_errors(
    file: Path, *errors: type[Exception]
) -> Iterator[None]:
    """Report errors as a damaged file of a model folder, within a context."""
    try:
        yield
    except errors as error:
        raise Error(
            f'{file} is damaged ({type(error).__name__}: {error}); fit again '
            'with `overwrite=True`'
        ) from error


Folder = TypeVar('Folder', bound='ModelFolder')


class ModelFolder:
    """Folder of a fitted model; it need not exist.

    ``path`` is the folder; the other attributes are paths of its files.
    """

    def __init__(self, path: str | PathLike):
        self.path = Path(path)
        self.model = self.path / MODEL
        self.probe = self.path / PROBE
        self.threshold = self.path / THRESHOLD
        self.table = self.path / TABLE
        self.cv_probabilities = self.path / CV_PROBABILITIES
        self.report = self.path / REPORT
        self.pictures = self.path / PICTURES
        self.file = self.path / RECORD

    @classmethod
    def open(cls: type[Folder], path: str | PathLike) -> Folder:
        """Open a folder with a model.

        Raises:
            FileNotFoundError: If it contains none.
            Error: If it is a file, or the model or its folder is a link.
        """
        if Path(expanduser(path)).is_file():
            raise Error(f'{path} is a file; pass the model folder')
        if not is_fitted(path):
            raise _not_found(path)
        return cls(expanduser(path))

    def read_record(self) -> dict:
        """Read fit.json, with the present keys.

        Raises:
            FileNotFoundError: If it is missing.
            Error: If it is damaged or a link.
        """
        from .checksums import KEY  # imports torch, which --help must not

        try:
            content = read_file(self.path, RECORD)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(
                f'{self.path} is not a model folder: fit.json is missing; '
                f'run: python -m mmclca fit PHOTOS --out {self.path}'
            ) from None
        with damaged_file_errors(self.file, Error):
            record = load_json_object(content)
        record.pop(KEY, None)
        return convert_record(record)

    def read_photos(self) -> list[PhotoRow]:
        """Read photographs.csv.

        Raises:
            OSError: If it is missing.
            Error: If it is damaged or a link.
        """
        content = read_file(self.path, TABLE)
        with damaged_file_errors(self.table, ValueError):
            return parse_photo_table(content)

    def read_used_photos(self) -> list[PhotoRow]:
        """Read the training photos from photographs.csv.

        Raises:
            OSError: If it is missing.
            Error: If it is damaged, a link, or lists none.
        """
        photos = [photo for photo in self.read_photos() if photo.is_used]
        if not photos:
            raise Error(
                f'{self.table} is damaged (no used photos); fit again with '
                '`overwrite=True`'
            )
        return photos

    def read_used_digests(self) -> set[str]:
        """Return the SHA-256 of training photos; empty if not readable."""
        with suppress(OSError, Error):
            return {photo.sha256 for photo in self.read_used_photos()} - {''}
        return set()

    def has_threshold(self) -> bool:
        """Return whether fit has written a threshold, by fit.json."""
        with suppress(OSError, Error):  # no record, or a damaged one
            threshold = self.read_record().get('threshold')
            # None with too few photos
            return (
                isinstance(threshold, dict)
                and threshold.get('threshold') is not None
            )
        return False

    def list_missing(self) -> list[str]:
        """List the names of files that fit wrote and that are gone.

        Empty if less than two files of a model are there.

        Raises:
            Error: If a file is a link.
        """
        names = {
            FILE_NAMES.get(name, name)
            for name in (*FILES, *FILE_NAMES)
            if find_newest(self.path, name).is_file()
        }
        missing = [name for name in FILES if name not in names]
        if len(FILES) - len(missing) < 2:
            return []
        if RECORD not in missing and not self.has_threshold():
            missing = [name for name in missing if name != THRESHOLD]
        return missing
