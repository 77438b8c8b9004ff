# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images that processes share, in a folder as long as one of them runs.

A process that uses the folder holds a shared lock on a file beside it. The
system releases a lock when its process ends, however it ends, so a folder
that nobody locks is left over and can be deleted.
"""

import fcntl
import json
import os
import shutil
from ast import literal_eval
from contextlib import suppress
from hashlib import blake2b
from io import BytesIO
from multiprocessing.util import Finalize
from pathlib import Path

import cv2
import mmcv
import numpy as np
import PIL

from mmclca.utils.atomic_write import replace_bytes


def steps_key(transforms: list[dict]) -> str:
    """Name what steps make of an image, alike for the same libraries."""
    versions = cv2.__version__, mmcv.__version__, PIL.__version__
    text = json.dumps([transforms, versions], sort_keys=True, default=repr)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def key_of(path: str) -> str | None:
    """Name an image; the name changes when its file is written or replaced.

    Returns:
        str | None: 32 digits; None where there is no file of which a change
        could be seen: it is missing, or on another machine.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    state = status.st_ino, status.st_size, status.st_mtime_ns
    text = repr((os.path.abspath(path), *state, status.st_ctime_ns))
    return blake2b(text.encode(), digest_size=16).hexdigest()


class ImageStore:
    """Images that processes of one machine fill and read together.

    Each is a file, written under another name and then renamed, so that it is
    there as a whole or not at all, whoever writes it.

    Args:
        parent (Path): An existing folder; in one of ``/dev/shm`` the images
            are in memory, else the system keeps in memory what fits.
        name (str): Processes that give the same name share the images, which
            go when the last of them ends.
        limit (int): Most bytes of the files.
        spare (float): Share of the file system that always stays free.

    Raises:
        OSError: If the folder cannot be written to.
    """

    def __init__(self, parent: Path, name: str, limit: int, spare: float):
        self.limit, self.spare = limit, spare
        self.shared = SharedFolder(own_folder(parent) / name)
        self.folder = self.shared.path
        self._count()

    def get(self, key: str) -> tuple[np.ndarray, dict] | None:
        """Read an image, and what :meth:`put` was given with it.

        Returns:
            tuple[np.ndarray, dict] | None: The pixels, which the caller may
            change, and the values; None where there are none that can be
            read.
        """
        try:
            # read in one go: a mapping, from which to copy, takes longer
            with open(self.folder / key, 'rb') as file:
                image = np.load(file)
                return image, literal_eval(file.read().decode())
        except (OSError, EOFError, SyntaxError, ValueError):
            return None

    def put(self, key: str, image: np.ndarray, more: dict) -> bool:
        """Add an image.

        Returns:
            bool: Whether it is there; else the store is full.

        Raises:
            OSError: If the file cannot be written.
        """
        file = BytesIO()
        np.save(file, image)
        file.write(repr(more).encode())
        content = file.getvalue()
        if not self._has_room(len(content)):
            return False
        replace_bytes(self.folder / key, content, sync=False)
        self.added += len(content)
        return True

    def _has_room(self, size: int) -> bool:
        room = self.limit - self.used
        # others add images, too: the less room, the more often it is measured
        if room / 64 < self.added + size <= room:
            self._count()
        disk = shutil.disk_usage(self.folder)
        return (
            self.used + self.added + size <= self.limit
            and disk.free - size >= self.spare * disk.total
        )

    def _count(self) -> None:
        self.used, self.added = 0, 0
        for entry in os.scandir(self.folder):
            with suppress(FileNotFoundError):  # renamed in this moment
                self.used += entry.stat().st_size


def own_folder(parent: Path) -> Path:
    """Make this user's folder for cached images, readable by no one else."""
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
