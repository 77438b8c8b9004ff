# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Read and write untrusted folders without following symbolic links.

Archives and repositories preserve links, so a downloaded folder may contain
links to private files of the user.
"""

import errno
import os
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from mmclca.errors import Error

# workers of a killed process may hold its lock until they start
WAIT = 0.5  # seconds
NO_LOCKS = errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP
WHOLE = '.whole'  # complete set of new files, which replaces the old set
# Windows cannot open folders; there, links are checked before each access
_HAS_HANDLES = os.open in os.supports_dir_fd
_FOLDER = os.O_RDONLY | getattr(os, 'O_DIRECTORY', 0)
_NO_LINK = getattr(os, 'O_NOFOLLOW', 0)
# else Windows converts line ends and stops at Ctrl-Z
_BINARY = getattr(os, 'O_BINARY', 0)


def refuse_links(folder: Path, names: Iterable[str]) -> None:
    """Raise ``Error`` if an entry, or anything below it, is a link.

    The folder itself may be a link, and entries may be missing.
    """
    for name in names:
        if (folder / name).is_symlink():  # else its target is listed
            raise _link_error(folder / name)
        for parent, folders, files in os.walk(folder / name):
            for path in (Path(parent, inner) for inner in folders + files):
                if path.is_symlink():
                    raise _link_error(path)


def _link_error(path: Path) -> Error:
    return Error(
        f'{path} is a symbolic link, which fit does not follow; replace it '
        'with a copy of its target, or remove it'
    )


def is_below(path: str | os.PathLike, folder: Path) -> bool:
    """Return whether a path, with its links resolved, is below a folder."""
    try:
        inside = Path(os.path.realpath(path))
    except ValueError:  # null byte
        return False
    return inside.is_relative_to(folder.resolve())


@contextmanager
def locked(folder: Path, users: str) -> Iterator[None]:
    """Lock a folder until the process ends, even if killed; create it.

    A folder that stays empty is removed. Some network file systems have no
    locks; there, nothing is locked.

    Raises:
        OSError: If the folder cannot be written.
        Error: If one of its ``users`` has locked it, or it has a link.
    """
    refuse_links(folder, ['.lock'])
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / '.lock', timeout=WAIT)
    try:
        lock.acquire()
    except Timeout:
        raise Error(
            f'{folder} is in use by another {users}; wait until it ends, or '
            'choose another folder'
        ) from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
    try:
        yield
    finally:
        with suppress(OSError):  # Windows removes it after the release
            (folder / '.lock').unlink()
        lock.release()
        with suppress(OSError):  # not empty
            folder.rmdir()


def remove_folder(folder: Path) -> None:
    """Remove a folder, if it exists; raise ``Error`` for a link."""
    if folder.is_symlink():
        raise _link_error(folder)
    if folder.is_dir():
        shutil.rmtree(folder)  # follows no links


class _OpenFolder(NamedTuple):
    """Path and handle of a folder; None on platforms without handles."""

    path: Path
    handle: int | None

    def get_entry(self, name: str) -> str | Path:
        """Return the path of an entry for a call with ``dir_fd=handle``."""
        return self.path / name if self.handle is None else name


@contextmanager
def _open_folder(
    folder: Path, names: Sequence[str] = ()
) -> Iterator[_OpenFolder]:
    """Open a subfolder, with ``names`` as path, without following links."""
    path = folder.joinpath(*names)
    if not _HAS_HANDLES:
        refuse_links(folder, names)
        yield _OpenFolder(path, None)
        return
    handle = os.open(folder, _FOLDER)
    try:
        for name in names:
            outer = handle
            handle = os.open(name, _FOLDER | _NO_LINK, dir_fd=outer)
            os.close(outer)
        yield _OpenFolder(path, handle)
    finally:
        os.close(handle)


def read_file(folder: Path, name: str) -> bytes:
    """Read the newest version of a file in a folder, see :func:`find_newest`.

    Raises:
        OSError: If it is missing or not a regular file.
        Error: See :func:`find_newest`.
    """
    path = find_newest(folder, name)
    names = path.parent.relative_to(folder).parts
    flags = os.O_RDONLY | _BINARY | _NO_LINK | getattr(os, 'O_NONBLOCK', 0)
    with _open_folder(folder, names) as parent:
        entry = parent.get_entry(name)
        file = os.open(entry, flags, dir_fd=parent.handle)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(f'{path} is not a regular file')
    with open(file, 'rb') as opened:
        return opened.read()


def find_newest(folder: Path, name: str) -> Path:
    """Return the path of the newest version of a file, which may not exist.

    If :func:`replace_files` was killed, it is in the set of new files.

    Raises:
        Error: If the file or the set of new files is a link.
    """
    refuse_links(folder, [WHOLE, name])
    new = folder / WHOLE / name
    return new if new.is_file() else folder / name


def replace_files(folder: Path, files: Path, names: Collection[str]) -> None:
    """Replace several files of a folder atomically, even if killed.

    Args:
        folder (Path): The folder.
        files (Path): Subfolder with the new files, which is removed. An empty
            file removes the old file.
        names (Collection[str]): All possible names of files.

    Raises:
        OSError: If the files cannot be moved.
        Error: If ``files`` is or contains a link; see also
            :func:`finish_replacing`.
    """
    finish_replacing(folder, names)
    refuse_links(folder, [files.name])
    files.rename(folder / WHOLE)  # from here on, the new files are the newest
    finish_replacing(folder, names)


def finish_replacing(folder: Path, names: Collection[str]) -> None:
    """Complete an interrupted :func:`replace_files`; call before writing.

    Raises:
        Error: If the set of new files is not a folder, or contains links
            or other files.
    """
    refuse_links(folder, [WHOLE])
    complete = folder / WHOLE
    if complete.is_file():
        raise Error(f'{complete} is a file, not a folder; remove it')
    if not complete.is_dir():
        return
    if unexpected := sorted({x.name for x in complete.glob('*')} - {*names}):
        path = complete / unexpected[0]
        raise Error(f'{path} was not written by fit; remove it')
    for name in names:
        with suppress(FileNotFoundError):  # not in the set
            _move(folder, name)
    with suppress(FileNotFoundError):  # another process removed it
        complete.rmdir()


def _move(folder: Path, name: str) -> None:
    """Move a new file into the folder; if it is empty, remove both."""
    with _open_folder(folder) as old, _open_folder(folder, [WHOLE]) as new:
        source, target = new.get_entry(name), old.get_entry(name)
        if os.stat(source, dir_fd=new.handle, follow_symlinks=False).st_size:
            os.replace(
                source, target, src_dir_fd=new.handle, dst_dir_fd=old.handle
            )
            return
        with suppress(FileNotFoundError):
            os.unlink(target, dir_fd=old.handle)
        os.unlink(source, dir_fd=new.handle)
