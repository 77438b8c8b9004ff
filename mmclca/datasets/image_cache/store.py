# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from .folder import SharedFile, own_folder
from .record import Place, pack, read, scan


class ImageStore:
    """Images in a file that processes of one machine fill and read together.

    Images are only ever added, each under a lock, so that two processes may
    fill it at once; reading takes no lock. What is damaged counts as missing.

    Args:
        parent (Path): An existing folder; in one of ``/dev/shm`` the images
            are in memory, else the system keeps in memory what fits.
        name (str): Processes that give the same name share the file, which
            goes when the last of them ends.
        limit (int): Most bytes of the file.
        spare (float): Share of the file system that always stays free.

    Raises:
        OSError: If the folder cannot be written to.
    """

    def __init__(self, parent: Path, name: str, limit: int, spare: float):
        self.limit, self.spare = limit, spare
        self.shared = SharedFile(own_folder(parent), name)
        self.places: dict[bytes, Place] = {}
        self.scanned = 0  # up to where the file's images are in ``places``
        self._open()

    def get(self, key: bytes) -> tuple[np.ndarray, dict] | None:
        """Read an image, and what :meth:`put` was given with it.

        Args:
            key (bytes): What it was put under.

        Returns:
            tuple[np.ndarray, dict] | None: None where there is none.

        Raises:
            OSError: If the file cannot be read.
        """
        self._reopen_after_fork()
        if key not in self.places:
            self._look_for_new()
        place = self.places.get(key)
        if place is None:
            return None
        return read(self.file, place) or self._mend(key)

    def put(self, key: bytes, image: np.ndarray, more: dict) -> bool:
        """Add an image, unless another process has just done it.

        Args:
            key (bytes): What it is found by, 16 bytes.
            image (np.ndarray): Its pixels.
            more (dict): Plain Python values that belong to it.

        Returns:
            bool: Whether it is there; else the store is full.

        Raises:
            OSError: If the file cannot be written.
        """
        content = pack(key, image, more)
        self._reopen_after_fork()
        with self._locked():
            self._scan()
            if key in self.places:
                return True
            if not self._has_room(len(content)):
                return False
            self._append(content)
            self._scan()
        return key in self.places

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT
        file = os.open(self.shared.path, flags, 0o600)
        self.opened = os.fdopen(file, 'r+b', buffering=0)
        self.file = file
        self.process = os.getpid()

    def _reopen_after_fork(self) -> None:
        # a lock on an inherited descriptor would be the parent's too
        if self.process != os.getpid():
            self._open()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.flock(self.file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self.file, fcntl.LOCK_UN)

    def _look_for_new(self) -> None:
        if os.fstat(self.file).st_size != self.scanned:
            with self._locked():
                self._scan()

    def _scan(self) -> None:
        """Learn what others have added; cut off what is not whole."""
        size = os.fstat(self.file).st_size
        if size < self.scanned:  # another process has cut it
            self._forget()
        for key, place in scan(self.file, self.scanned, size):
            self.places[key] = place
            self.scanned = place.end
        if self.scanned < size:  # left by a process that was killed
            os.ftruncate(self.file, self.scanned)

    def _forget(self) -> None:
        self.places, self.scanned = {}, 0

    def _mend(self, key: bytes) -> tuple[np.ndarray, dict] | None:
        """Look again for what is damaged; cut the file where it still is."""
        with self._locked():
            self._forget()
            self._scan()
            place = self.places.get(key)
            found = place and read(self.file, place)
            if place and not found:
                os.ftruncate(self.file, place.begin)
                self._scan()
        return found

    def _has_room(self, more: int) -> bool:
        system = os.fstatvfs(self.file)
        free = system.f_bavail * system.f_frsize - more
        spared = self.spare * system.f_blocks * system.f_frsize
        return self.scanned + more <= self.limit and free >= spared

    def _append(self, content: bytes) -> None:
        try:
            rest = memoryview(content)
            while rest:
                position = self.scanned + len(content) - len(rest)
                rest = rest[os.pwrite(self.file, rest, position) :]
        except OSError as error:
            os.ftruncate(self.file, self.scanned)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
