# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Files: written whole or not at all, read without waiting, and CSV tables.

No reader finds a file half written, whatever ends the writer. What a user
names is read without waiting for a pipe or a device. Of a table a spreadsheet
runs nothing.
"""

import csv
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import BinaryIO, TypeVar
from uuid import uuid4

from .lazy import lazy

fileio = lazy('mmengine.fileio')

MIB = 2**20
Written = TypeVar('Written')
# name of a file that is being written: a stem, a number and a suffix
PARTIAL = '.{}.' + '[0-9a-f]' * 32 + '{}'


def replace_file(
    path: Path, write: Callable[[Path], Written], sync: bool = True
) -> Written:
    """Write a file under another name, then rename it.

    Readers find the whole file or none, on network file systems too, and of
    many writers each leaves a whole one. Where writing fails, what had the
    name before keeps it.

    Args:
        path (Path): The file; its folder is made.
        write (Callable): Writes to the path that it is given, whose suffix
            is that of the file.
        sync (bool): Whether it is on disk before it has its name, as a file
            must be that outlives the machine's next failure of power.
            Defaults to True.

    Returns:
        What ``write`` returned.

    Raises:
        OSError: If it cannot be written, as on a full disk.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f'.{path.stem}.{uuid4().hex}{path.suffix}')
    try:
        written = write(partial)
        if sync:
            _sync(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    if sync:
        with suppress(OSError):  # not every file system syncs folders
            _sync(path.parent)
    return written


def replace_bytes(path: Path, content: bytes, sync: bool = True) -> None:
    """Write bytes to a file; see :func:`replace_file`.

    Args:
        path (Path): The file.
        content (bytes): Its content.
        sync (bool): See there. Defaults to True.

    Raises:
        OSError: If it cannot be written; names needed and free disk space.
    """
    try:
        replace_file(path, lambda part: part.write_bytes(content), sync)
    except OSError as error:
        folder = next(parent for parent in path.parents if parent.is_dir())
        free = shutil.disk_usage(folder).free
        raise OSError(
            error.errno,
            f'cannot write {path}: {error.strerror} ({len(content) / MIB:.1f} '
            f'MiB needed, {free / MIB:.1f} MiB free)',
        ) from error


def replace_text(path: Path, text: str) -> None:
    """Write a text to a file; see :func:`replace_bytes`.

    Args:
        path (Path): The file.
        text (str): Its content.
    """
    replace_bytes(path, text.encode())


def remove_partial_files(folder: Path, stem='*', suffix='*') -> None:
    """Remove the files that killed writers left in a folder.

    Args:
        folder (Path): The folder, to which no process is writing.
        stem (str): Pattern of the names without suffix. Defaults to '*'.
        suffix (str): Pattern of the suffixes. Defaults to '*'.
    """
    for partial in folder.glob(PARTIAL.format(stem, suffix)):
        partial.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def open_file(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Open a file to read it.

    Raises:
        OSError: If it cannot be opened, or is a pipe, a device, a socket or a
            folder.
    """
    with open(path, 'rb', opener=_open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            reason = 'Not a regular file but a pipe, device or socket'
            raise OSError(errno.EINVAL, reason, str(path))
        yield file


def _open_at_once(path, flags: int) -> int:
    # opening a pipe else waits until somebody writes to it
    return os.open(path, flags | getattr(os, 'O_NONBLOCK', 0))


def read_bytes(path: str | os.PathLike) -> bytes:
    """Read a file, or a URL supported by mmengine.

    Raises:
        OSError: See :func:`open_file`.
    """
    if '://' in str(path):
        try:
            return fileio.get(path)
        except (ImportError, KeyError) as error:
            reason = 'URL scheme is not supported'
            raise OSError(errno.EINVAL, reason, str(path)) from error
    with open_file(path) as file:
        return file.read()


def read_lines(path: str | os.PathLike) -> list[str]:
    """Read the lines of a UTF-8 text, without line breaks.

    A byte order mark is skipped.

    Raises:
        OSError: See :func:`open_file`.
        ValueError: If it is in another encoding.
    """
    try:
        text = read_bytes(path).decode('utf-8-sig')
    except UnicodeDecodeError as error:
        raise ValueError(f'{path} is not UTF-8 ({error})') from error
    return [line.rstrip('\r\n') for line in StringIO(text)]


# a spreadsheet computes cells that begin so
_SIGNS = ('=', '+', '-', '@', '\t', '\r')


def to_cell(value):
    """Return a value as it is written: before texts like formulas comes a
    quote."""
    return f"'{value}" if _is_formula(value) else value


def from_cell(value):
    """Return a value as it was before :func:`to_cell`."""
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


def read_rows(path: str | Path, *columns: str) -> list[dict[str, str]]:
    """Return rows of a table, by the titles in its first one.

    Args:
        path (str | Path): The table.
        *columns: Titles that the table must have.

    Raises:
        OSError: See :func:`open_file`.
        ValueError: If a cell is too large or a column is missing.
    """
    try:
        return rows_of(read_bytes(path), *columns)
    except ValueError as error:
        raise ValueError(f'{path}: {error}') from error


def rows_of(content: bytes, *columns: str) -> list[dict[str, str]]:
    """Return rows of the content of a table, see :func:`read_rows`.

    Raises:
        ValueError: If a cell is too large, with its line, or a column is
            missing.
    """
    text = content.decode('utf-8-sig', 'surrogateescape')
    rows = csv.DictReader(StringIO(text, newline=''))
    try:
        for name in columns:
            if name not in (rows.fieldnames or ()):
                raise ValueError(f'column {name!r} is missing')
        return [{key: from_cell(row[key]) for key in row} for row in rows]
    except csv.Error as error:
        raise ValueError(f'line {rows.reader.line_num}: {error}') from error
