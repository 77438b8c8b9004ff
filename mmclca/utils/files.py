# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write files atomically, read files of users, read and write CSV tables.

Readers never see a partly written file, even if the writer is killed. Reading
never blocks on a pipe or a device. Cells never become spreadsheet formulas.
"""

import csv
import errno
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import BinaryIO, TypeVar
from uuid import uuid4

from mmclca.errors import Error

MIB = 2**20
Written = TypeVar('Written')
# name of a file during writing: stem, random number, suffix
PARTIAL = '.{}.' + '[0-9a-f]' * 32 + '{}'


@contextmanager
def replacing(path: Path, sync: bool = True) -> Iterator[Path]:
    """Write a file under a temporary name, then rename it.

    Readers find the complete file or none, also on network file systems and
    with several writers. If writing fails, an existing file is kept.

    Args:
        path (Path): The file; its folder is created.
        sync (bool): Whether the content is on disk before the file is
            renamed, to survive a power failure. Defaults to True.

    Yields:
        The path to write to, which has the suffix of the file.

    Raises:
        OSError: If writing fails, as on a full disk.
    """
    partial = path.with_name(f'.{path.stem}.{uuid4().hex}{path.suffix}')
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        if sync:
            _sync(partial)
        os.replace(partial, path)
    except OSError as error:
        folder = next(parent for parent in path.parents if parent.is_dir())
        free = shutil.disk_usage(folder).free / MIB
        # Windows does not replace files that are open
        is_open = sys.platform == 'win32' and error.errno == errno.EACCES
        hint = '; close the programs that show it' * is_open
        raise OSError(
            error.errno,
            f'cannot write {path}: {error.strerror or error} '
            f'({free:.1f} MiB free){hint}',
        ) from error
    finally:
        with suppress(OSError):  # already reported
            partial.unlink(missing_ok=True)
    if sync:
        with suppress(OSError):  # not every file system syncs folders
            _sync(path.parent)


def replace_file(
    path: Path, write: Callable[[Path], Written], sync: bool = True
) -> Written:
    """Call ``write`` with a temporary name; see :func:`replacing`."""
    with replacing(path, sync) as partial:
        return write(partial)


def replace_bytes(path: Path, content: bytes, sync: bool = True) -> None:
    """Write bytes to a file, see :func:`replacing`."""
    with replacing(path, sync) as partial:
        partial.write_bytes(content)


def replace_text(path: Path, content: str) -> None:
    """Write a text to a file, see :func:`replace_bytes`."""
    replace_bytes(path, content.encode())


def save(backend, obj: bytes, filepath: str | os.PathLike) -> None:
    """Replace a file in one step, as a method of a file backend."""
    replace_bytes(Path(filepath), obj)


def save_text(
    backend, obj: str, filepath: str | os.PathLike, encoding: str = 'utf-8'
) -> None:
    """Replace a text in one step, as a method of a file backend."""
    save(backend, obj.encode(encoding), filepath)


@contextmanager
def atomic_backend() -> Iterator[None]:
    """Make mmengine and mmcv replace local files in one step, in a context.

    Commands of mmclca, which own their process, run in it.
    """
    from mmengine import fileio

    local = fileio.LocalBackend
    before = local.put, local.put_text
    local.put, local.put_text = save, save_text
    try:
        yield
    finally:
        local.put, local.put_text = before


def remove_partial_files(folder: Path, stem='*', suffix='*') -> None:
    """Remove temporary files of killed writers from a folder.

    No process may be writing to it. ``stem`` and ``suffix`` are glob patterns
    of the files.
    """
    for partial in folder.glob(PARTIAL.format(stem, suffix)):
        partial.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    # Windows syncs only what is open for writing; there, no folder is
    flags = os.O_RDWR if sys.platform == 'win32' else os.O_RDONLY
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def open_file(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Open a file for reading.

    Raises:
        OSError: If it is missing or not a regular file.
    """
    # without this flag, opening a pipe blocks until there is a writer
    nonblocking = getattr(os, 'O_NONBLOCK', 0)

    def open_nonblocking(name, flags: int) -> int:
        return os.open(name, flags | nonblocking)

    with open(path, 'rb', opener=open_nonblocking) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            reason = 'Not a regular file but a pipe, device or socket'
            raise OSError(errno.EINVAL, reason, str(path))
        yield file


def read_bytes(path: str | os.PathLike) -> bytes:
    """Read a file, see :func:`open_file`, or a URL supported by mmengine."""
    if '://' in str(path):
        from mmengine import fileio

        try:
            return fileio.get(path)
        except (ImportError, KeyError) as error:
            reason = 'URL scheme is not supported'
            raise OSError(errno.EINVAL, reason, str(path)) from error
    with open_file(path) as file:
        return file.read()


def read_lines(path: str | os.PathLike) -> list[str]:
    """Read the lines of a UTF-8 text, without line breaks or byte order mark.

    Raises:
        Error: If the text has another encoding.
    """
    try:
        decoded = read_bytes(path).decode('utf-8-sig')
    except UnicodeDecodeError as error:
        raise Error(f'{path} is not UTF-8 ({error})') from error
    return [line.rstrip('\r\n') for line in StringIO(decoded)]


# first characters of spreadsheet formulas
_SIGNS = ('=', '+', '-', '@', '\t', '\r')


def to_cell(value):
    """Put a quote before a text if a spreadsheet would run it as a formula."""
    return f"'{value}" if _is_formula(value) else value


def from_cell(value):
    """Undo :func:`to_cell`."""
    return value[value[0] == "'" :] if _is_formula(value) else value


def _is_formula(value) -> bool:
    # quoted texts get another quote, to keep from_cell unambiguous
    return isinstance(value, str) and value.lstrip("'").startswith(_SIGNS)


def write_rows(path: str | Path, rows: Iterable[Iterable]) -> None:
    """Write a CSV table atomically; :func:`to_cell` escapes its cells.

    A table with other letters than ASCII begins with a byte order mark,
    without which Excel shows wrong letters.
    """
    output = StringIO()
    writer = csv.writer(output, lineterminator='\n')
    writer.writerows(map(to_cell, row) for row in rows)
    content = output.getvalue()
    mark = '' if content.isascii() else '\ufeff'
    encoded = f'{mark}{content}'.encode(errors='surrogateescape')
    replace_bytes(Path(path), encoded)


def read_rows(path: str | Path, *columns: str) -> list[dict[str, str]]:
    """Read the rows of a table as dicts, by the titles in its first row.

    Raises:
        Error: If a required column is missing, or a cell is too large.
    """
    try:
        return parse_rows(read_bytes(path), *columns)
    except Error as error:
        raise Error(f'{path}: {error}') from error


def parse_rows(content: bytes, *columns: str) -> list[dict[str, str]]:
    """Parse the content of a table, see :func:`read_rows`."""
    decoded = content.decode('utf-8-sig', 'surrogateescape')
    rows = csv.DictReader(StringIO(decoded, newline=''))
    try:
        for name in columns:
            if name not in (rows.fieldnames or ()):
                raise Error(f'column {name!r} is missing')
        return [{key: from_cell(row[key]) for key in row} for row in rows]
    except csv.Error as error:
        raise Error(f'line {rows.reader.line_num}: {error}') from error
