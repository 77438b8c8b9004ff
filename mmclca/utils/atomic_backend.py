# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Local files of mmengine that are written whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmengine.fileio import LocalBackend
from mmengine.fileio.backends import prefix_to_backends, register_backend

from .atomic_write import replace_bytes


class AtomicLocalBackend(LocalBackend):
    """mmengine's ``LocalBackend``, which replaces files in one step."""

    def put(self, obj: bytes, filepath: str | Path) -> None:
        """Write a file beside its place, then rename it.

        Raises:
            OSError: If it cannot be written, as on a full disk.
        """
        replace_bytes(Path(filepath), obj)


@contextmanager
def atomic_writes() -> Iterator[None]:
    """Within it mmengine writes local files by :class:`AtomicLocalBackend`."""
    before = prefix_to_backends['']
    register_backend('local', AtomicLocalBackend, force=True, prefixes='')
    try:
        yield
    finally:
        register_backend('local', before, force=True, prefixes='')
