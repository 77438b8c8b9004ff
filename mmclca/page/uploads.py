# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Uploaded folders and ZIP archives of photos, which may be hostile."""

import shutil
import zlib
from collections.abc import Callable, Sequence
from io import FileIO
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile

from mmclca.apis.features import digest_of_file
from mmclca.utils.folders import is_below, locked, remove_folder

from .limits import MAX_FILES, MAX_MEGABYTES, MEGABYTES, MIB, why_full

# errors of zipfile for damaged and unknown content
DAMAGED = BadZipFile, EOFError, LZMAError, NotImplementedError, RuntimeError
DAMAGED += (zlib.error,)
DIRECTORY_BYTES = 500  # listed entries, per allowed photo


def uploaded(path: str, uploads: Path, megabytes: int = MEGABYTES) -> Path:
    """Resolve an upload path; raise ``ValueError`` if elsewhere or large."""
    # a forged request may name any file on this computer: Gradio accepts
    # such a path if "meta" is missing
    file = Path(path).resolve()
    if not (file.is_relative_to(uploads) and file.is_file()):
        raise ValueError(
            'This file was not uploaded to this page, or is already deleted. '
            'Please drop it here.'
        )
    _check_sizes([file.stat().st_size], megabytes)
    return file


def store(
    files: Sequence[Path],
    names: Sequence[str],
    folder: Path,
    check: Callable[[Path], str],
) -> str:
    """Write uploaded files to ``photos`` in a folder, which is created.

    Hidden files are skipped, and outer folders with a single folder omitted.
    A refused or unfinished upload leaves nothing.

    Args:
        files (Sequence[Path]): Files of a folder, or one ZIP archive.
        names (Sequence[str]): Paths of the files in their folder.
        folder (Path): Folder of photos and model.
        check (Callable): Checks the written photos, and may raise.

    Returns:
        str: Result of ``check``.

    Raises:
        OSError: If the disk is full.
        ValueError: If a limit is exceeded, the content is damaged or refused,
            or the folder has other photos.
    """
    with locked(folder, 'page'):
        draft, photos = folder / '.photos', folder / 'photos'
        remove_folder(draft)  # left by a killed page
        try:
            draft.mkdir()
            top = _innermost(_write(files, names, draft))
            found = check(top)
            if not photos.exists():
                top.rename(photos)
            elif _contents(top) != _contents(photos):
                raise ValueError(
                    f'{folder.name} already has other photos. Please type '
                    'another name, and choose the photos again.'
                )
            return found
        except DAMAGED as error:
            raise ValueError(f'This ZIP cannot be read: {error}.') from error
        except ValueError as error:  # the draft is not known to users
            text = str(error).replace(str(draft), folder.name)
            raise ValueError(text) from error
        finally:
            remove_folder(draft)


class _Archive(FileIO):
    """ZIP file with a limit for the length of its entry list."""

    def read(self, size: int = -1) -> bytes:
        if size > DIRECTORY_BYTES * MAX_FILES:
            raise ValueError(
                f'This ZIP has too many entries: the limit is {MAX_FILES:,} '
                'photos.'
            )
        return super().read(size)


def _write(files: Sequence[Path], names: Sequence[str], draft: Path) -> Path:
    """Write the visible files to a folder, which is returned."""
    if len(files) == 1 and files[0].suffix.lower() == '.zip':
        with _Archive(files[0]) as file, ZipFile(file) as opened:
            infos = [x for x in opened.infolist() if _is_visible(x.filename)]
            if any(info.flag_bits & 1 for info in infos):
                raise ValueError(
                    'This ZIP is encrypted: make one without a password.'
                )
            _check_sizes([x.file_size for x in infos], MEGABYTES, draft)
            # no file is written outside, and no link is made
            opened.extractall(draft, infos)
        return draft
    if len(files) != len(names):
        raise ValueError(
            'The folder names are missing. Please choose one folder, or one '
            'ZIP.'
        )
    _check_sizes([file.stat().st_size for file in files], MEGABYTES, draft)
    for file, name in zip(files, names, strict=True):
        target = draft / name
        if not is_below(target, draft):
            raise ValueError(f'The path {name!r:.80} is not allowed.')
        if _is_visible(name):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    return draft


def _is_visible(name: str) -> bool:
    """Return whether a path is not hidden, or an addition of macOS."""
    parts = PurePosixPath(name).parts
    return not any(x.startswith('.') or x == '__MACOSX' for x in parts)


def _check_sizes(
    sizes: Sequence[int], megabytes: int, folder: Path | None = None
) -> None:
    """Refuse sizes above the limits, or above the space of a folder."""
    if max(sizes, default=0) > megabytes * MIB:
        raise ValueError(f'A file is too large: the limit is {megabytes} MB.')
    total = sum(sizes)
    if len(sizes) > MAX_FILES or total > MAX_MEGABYTES * MIB:
        raise ValueError(
            f'{len(sizes):,} files with {total / MIB:,.0f} MB exceed the '
            f'limits of {MAX_FILES:,} files and {MAX_MEGABYTES:,} MB.'
        )
    if folder and (problem := why_full(folder, total)):
        raise OSError(problem)


def _innermost(folder: Path) -> Path:
    """Return the first folder below with several entries or with files."""
    inner = [*folder.iterdir()]
    if len(inner) == 1 and any(map(Path.is_dir, inner[0].glob('*'))):
        return _innermost(inner[0])
    return folder


def _contents(folder: Path) -> dict:
    """Return the SHA-256 of all files, by relative path."""
    files = [path for path in folder.rglob('*') if path.is_file()]
    return {x.relative_to(folder): digest_of_file(str(x)) for x in files}
