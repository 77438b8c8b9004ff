# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A folder that is there as long as a process uses it.

A process that uses it holds a shared lock on a file beside it. The system
releases a lock when its process ends, however it ends, so a folder that
nobody locks is left over and can be deleted.
"""

import fcntl
import os
import shutil
from contextlib import suppress
from multiprocessing.util import Finalize
from pathlib import Path


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


class SharedFolder:
    """A folder that is deleted when the last process that uses it ends.

    Args:
        path (Path): Processes that give the same path share the folder.

    Raises:
        OSError: If it cannot be made.
    """

    def __init__(self, path: Path):
        for lock in path.parent.glob('*.lock'):
            _delete_unused(lock)  # of processes that were killed
        self.path = path
        lock = path.with_suffix('.lock')
        held = _hold(lock)
        path.mkdir(exist_ok=True)
        # negative: after the workers, which share the lock, were ended
        Finalize(self, _leave, (held, lock), exitpriority=-10)


def _hold(lock: Path) -> int:
    held = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(held, fcntl.LOCK_SH)
    if os.fstat(held).st_nlink:
        return held
    os.close(held)  # another process has just deleted it
    return _hold(lock)


def _leave(held: int, lock: Path) -> None:
    os.close(held)
    _delete_unused(lock)


def _delete_unused(lock: Path) -> None:
    with suppress(OSError), open(lock, 'r+b') as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file.fileno()).st_nlink:
            shutil.rmtree(lock.with_suffix(''), ignore_errors=True)
            lock.unlink()
