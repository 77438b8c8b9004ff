# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
import shutil
from ast import literal_eval
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import numpy as np

from mmclca.utils.atomic_write import replace_bytes

from .folder import SharedFolder, own_folder


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

        Args:
            key (str): What it was put under.

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

        Args:
            key (str): What it is found by.
            image (np.ndarray): Its pixels.
            more (dict): Plain Python values that belong to it.

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
