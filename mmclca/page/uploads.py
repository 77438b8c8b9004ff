# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Uploaded folders and ZIP archives of photos, which may be hostile."""

import json
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from lzma import LZMAError
from os import PathLike
from pathlib import Path
from struct import error as StructError
from tempfile import TemporaryDirectory
from typing import TypeVar
from zipfile import BadZipFile, ZipFile

from mmclca.checkpoints.gate.folders import is_below, locked, remove_folder
from mmclca.checkpoints.gate.photo_table import compute_sha256
from mmclca.errors import Error
from mmclca.languages import text
from mmclca.utils.image_suffixes import PHOTO_SUFFIXES
from mmclca.utils.messages import join_first

from .limits import MAX_FILES, MAX_MEGABYTES, MEGABYTES, MIB, why_full
from .names import distinct, name_upload, normalize_path, read_names

# errors of zipfile for damaged and unknown content
DAMAGED = (
    BadZipFile,
    EOFError,
    LZMAError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    StructError,
    ValueError,
    zlib.error,
)
ARCHIVES = '.7z', '.gz', '.rar', '.tar', '.zip'
MAX_SHOWN = 80  # letters of a refused path
DIRECTORY_BYTES = 500  # listed entries, per allowed photo
Checked = TypeVar('Checked')


def resolve_upload(
    upload: object, folder: Path, megabytes: int = MEGABYTES
) -> Path:
    """Return the file of an upload.

    Args:
        upload (object): Message from the browser, with ``path``.
        folder (Path): Folder of all uploads.
        megabytes (int): Maximum size. Defaults to 50.

    Raises:
        Error: If the file is elsewhere, missing or too large.
    """
    path = upload.get('path') if isinstance(upload, dict) else None
    # a forged request may name any file on this computer: Gradio accepts
    # such a path if "meta" is missing
    if isinstance(path, str | PathLike) and '\0' not in str(path):
        file = Path(path).resolve()
        if file.is_relative_to(folder) and file.is_file():
            _check_sizes([file.stat().st_size], megabytes)
            return file
    raise Error(text('page.upload.gone'))


def read_paths(content: str) -> list[str]:
    """Read the paths in the browser from JSON."""
    try:
        paths = json.loads(content or '[]')
    except (RecursionError, ValueError) as error:
        raise Error(text('page.upload.damaged_list', problem=error)) from error
    if not isinstance(paths, list) or {*map(type, paths)} - {str}:
        problem = text('page.upload.no_list')
        raise Error(text('page.upload.damaged_list', problem=problem))
    return paths


def store(
    files: Sequence[Path],
    names: Sequence[str],
    folder: Path,
    check: Callable[[Path], Checked],
) -> tuple[list[str], Checked]:
    """Write uploaded files to ``photos`` in a folder, which is created.

    Hidden files are skipped, and outer folders with a single folder omitted.
    Names are normalized, see :mod:`mmclca.page.names`.
    A refused or unfinished upload leaves nothing.

    Args:
        files (Sequence[Path]): Files of a folder, or one ZIP archive.
        names (Sequence[str]): Paths of the files in their folder.
        folder (Path): Folder of photos and model.
        check (Callable): Checks the written photos, and may raise.

    Returns:
        tuple: Notes on the upload, and the result of ``check``.

    Raises:
        OSError: If the folder cannot be written.
        Error: If a limit is exceeded, the disk is full, the content is
            damaged or refused, or the folder has other photos.
    """
    photos = folder / 'photos'
    with (
        locked(folder, 'page'),
        unpacked(files, names, folder) as (top, notes),
    ):
        checked = check(top)
        if not photos.exists():
            top.rename(photos)
        elif _hash_files(top) != _hash_files(photos):
            raise Error(text('page.upload.other_photos', name=folder.name))
        return notes, checked


@contextmanager
def unpacked(
    files: Sequence[Path], names: Sequence[str], folder: Path
) -> Iterator[tuple[Path, list[str]]]:
    """Write uploaded files to a draft in a folder, removed at the end.

    Yields:
        tuple: Folder with the folders of photos; and notes for the user.

    Raises:
        Error: As in :func:`store`, or if the context raises an OSError.
    """
    draft = folder / '.photos'
    remove_folder(draft)  # left by a killed page
    try:
        draft.mkdir()
        notes = _write(files, names, draft)
        yield _find_innermost(draft, notes), notes
    except OSError as error:  # without the path of the draft
        name = Path(error.filename or folder).name
        problem = error.strerror or error
        raise Error(
            text('page.upload.not_stored', name=name, problem=problem)
        ) from error
    except Error as error:  # the draft is not known to users
        message = str(error).replace(str(draft), folder.name)
        raise Error(message) from error
    finally:
        remove_folder(draft)


@dataclass(frozen=True)
class UploadedFolder:
    """Uploaded folder of photos.

    Args:
        title (str): Name of the folder or archive.
        path (Path): The photos; it exists within a context.
        notes (list[str]): Remarks on the upload.
    """

    title: str
    path: Path
    notes: list[str]


@contextmanager
def opened(
    upload: list | None, paths: str, uploads: Path
) -> Iterator[UploadedFolder]:
    """Unpack an uploaded folder or ZIP archive; delete it at the end.

    Args:
        upload (list | None): Messages from the browser, with ``path``.
        paths (str): Paths in the browser, as JSON.
        uploads (Path): Folder of all uploads.

    Raises:
        Error: As in :func:`resolve_upload` and :func:`unpacked`.
    """
    files = [
        resolve_upload(entry, uploads, MAX_MEGABYTES)
        for entry in upload or [None]
    ]
    names = read_paths(paths)
    title = name_upload(names, files)
    with TemporaryDirectory(dir=uploads, prefix='opened-') as place:
        folder = Path(place, title)
        folder.mkdir()
        with unpacked(files, names, folder) as (photos, notes):
            for file in files:
                file.unlink(missing_ok=True)
            yield UploadedFolder(title, photos, notes)


class _Archive(FileIO):
    """ZIP file with a limit for the length of its entry list."""

    def read(self, size: int = -1) -> bytes:
        if size > DIRECTORY_BYTES * MAX_FILES:
            limit = f'{MAX_FILES:,}'
            raise Error(text('page.upload.many_entries', limit=limit))
        return super().read(size)


@contextmanager
def _damaged_zip_errors() -> Iterator[None]:
    """Report errors of zipfile as a damaged archive."""
    try:
        yield
    except (Error, OSError):
        raise
    except DAMAGED as error:
        raise Error(text('page.upload.damaged_zip', problem=error)) from error


def _write(
    files: Sequence[Path], names: Sequence[str], draft: Path
) -> list[str]:
    """Write the visible files to a folder; return notes for the user."""
    if len(files) == 1 and files[0].suffix.lower() == '.zip':
        with _Archive(files[0]) as file:
            with _damaged_zip_errors():
                archive = ZipFile(file)
            return _unpack(archive, draft)
    if len(files) != len(names):
        raise Error(text('page.upload.no_folders'))
    _check_sizes([file.stat().st_size for file in files], MEGABYTES, draft)
    for name in names:
        if not is_below(draft / name, draft):
            path = repr(name)[:MAX_SHOWN]
            raise Error(text('page.upload.path', path=path))
    for index, target in _name_targets(names, draft).items():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(files[index], target)
    return []


def _unpack(archive: ZipFile, draft: Path) -> list[str]:
    """Write the visible files in an archive; return notes for the user."""
    names, notes = read_names(archive.infolist())
    targets = _name_targets(names, draft)
    infos = {archive.infolist()[i]: path for i, path in targets.items()}
    if any(info.flag_bits & 1 for info in infos):
        raise Error(text('page.upload.encrypted'))
    _check_sizes([info.file_size for info in infos], MEGABYTES, draft)
    # no file is written outside, and no link is made
    for info, target in infos.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            _damaged_zip_errors(),
            archive.open(info) as source,
            target.open('wb') as file,
        ):
            shutil.copyfileobj(source, file)
    return notes


def _name_targets(names: Sequence[str], draft: Path) -> dict[int, Path]:
    """Return a path per visible file, by its position in ``names``.

    Folder names end with ``/``.
    """
    visible = {}
    for i, name in enumerate(names):
        path = normalize_path(name)
        is_hidden = any(
            part.startswith('.') or part == '__MACOSX' for part in path.parts
        )
        if path.parts and not name.endswith('/') and not is_hidden:
            visible[i] = path
    _check_archives([path.name for path in visible.values()])
    paths = distinct([*visible.values()])
    return {i: draft / x for i, x in zip(visible, paths, strict=True)}


def _check_archives(names: Sequence[str]) -> None:
    """Refuse archives in an upload without photos."""
    inner = [x for x in names if x.lower().endswith(ARCHIVES)]
    if inner and not any(x.lower().endswith(PHOTO_SUFFIXES) for x in names):
        shown = join_first(inner, 3)
        raise Error(text('page.upload.archives', names=shown))


def _check_sizes(
    sizes: Sequence[int], megabytes: int, folder: Path | None = None
) -> None:
    """Refuse sizes above the limits, or above the space of a folder."""
    if max(sizes, default=0) > megabytes * MIB:
        raise Error(text('page.upload.large_file', limit=megabytes))
    total = sum(sizes)
    if len(sizes) > MAX_FILES or total > MAX_MEGABYTES * MIB:
        raise Error(
            text(
                'page.upload.over_limits',
                files=f'{len(sizes):,}',
                total=f'{total / MIB:,.0f}',
                max_files=f'{MAX_FILES:,}',
                max_total=f'{MAX_MEGABYTES:,}',
            )
        )
    if folder and (problem := why_full(folder, total)):
        raise OSError(problem)


def _find_innermost(folder: Path, notes: list[str]) -> Path:
    """Return the first folder below with several folders, or with files.

    Add a note on files outside this folder, if any.
    """
    inner = [*folder.iterdir()]
    folders = [path for path in inner if path.is_dir()]
    if len(folders) != 1 or not any(map(Path.is_dir, folders[0].glob('*'))):
        return folder
    if outside := sorted(path.name for path in inner if path != folders[0]):
        notes.append(
            text(
                'page.upload.outside',
                number=len(outside),
                folder=folders[0].name,
                names=join_first(outside, 3),
            )
        )
    return _find_innermost(folders[0], notes)


def _hash_files(folder: Path) -> dict:
    """Return the SHA-256 of all files, by relative path."""
    files = [path for path in folder.rglob('*') if path.is_file()]
    return {x.relative_to(folder): compute_sha256(str(x)) for x in files}
