# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A folder whose files are there as long as a process uses them.

A process that uses a file holds a shared lock on another one beside it. The
system gives a lock up when its process ends, however it ends, so what nobody
locks is left over and can be deleted.
"""

import fcntl
import os
from contextlib import suppress
from multiprocessing.util import Finalize
from pathlib import Path

_LOCK, _CONTENT, _SAID = '.lock', '.images', '.full'


def own_folder(parent: Path) -> Path:
    """Make this user's folder for cached images, readable by no one else.

    Args:
        parent (Path): An existing folder that may belong to all users.

    Returns:
        Path: The folder.

    Raises:
        OSError: If it cannot be made, or belongs to someone else.
    """
    folder = parent / f'mmclca-images-{os.getuid()}'
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise PermissionError(f'{folder} belongs to another user')
    return folder


class SharedFile:
    """A file that is deleted when the last process that uses it ends.

    Args:
        folder (Path): Of :func:`own_folder`.
        name (str): Processes that give the same name share the file.
    """

    def __init__(self, folder: Path, name: str):
        _sweep(folder)
        self.base = folder / name
        self.path = self.base.with_suffix(_CONTENT)
        lock = _hold(self.base.with_suffix(_LOCK))
        # negative: after the workers, which share the lock, were ended
        Finalize(self, _leave, (lock, self.base), exitpriority=-10)

    def first_to_say(self) -> bool:
        """Tell whether no process has asked this before."""
        flags = os.O_CREAT | os.O_EXCL
        try:
            os.close(os.open(self.base.with_suffix(_SAID), flags, 0o600))
        except FileExistsError:
            return False
        except OSError:  # better twice than never
            return True
        return True


def _hold(path: Path) -> int:
    """Open a file and lock it for use, beside others."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_SH)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.stat(path)):
                return lock
        os.close(lock)  # it was deleted between the two lines


def _leave(lock: int, base: Path) -> None:
    os.close(lock)
    with suppress(OSError):
        _delete_unused(base)


def _sweep(folder: Path) -> None:
    """Delete what processes that were killed have left."""
    for lock in folder.glob(f'*{_LOCK}'):
        with suppress(OSError):
            _delete_unused(lock.with_suffix(''))


def _delete_unused(base: Path) -> None:
    path = base.with_suffix(_LOCK)
    lock = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(lock), os.stat(path)):
            return  # another process has deleted it and begun anew
        for suffix in (_CONTENT, _SAID, _LOCK):
            base.with_suffix(suffix).unlink(missing_ok=True)
    finally:
        os.close(lock)
