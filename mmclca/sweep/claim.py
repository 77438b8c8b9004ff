# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which process runs a cell."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

# a sweep that looks whether a cell is claimed holds the claim for a moment
PATIENCE = 5.0
LOCK = 'claim.lock'


@contextmanager
def claim(folder: Path, patience: float = PATIENCE) -> Iterator[bool]:
    """Claim a cell, and give it back at the end.

    It is a lock of the operating system, which holds no longer than the
    process, however that ends.

    Args:
        folder (Path): Folder of the cell.
        patience (float): Seconds to wait for it. Defaults to ``PATIENCE``.

    Yields:
        bool: Whether the cell is claimed; if not, another process has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        held = FileLock(folder / LOCK).acquire(timeout=patience)
    except Timeout:
        yield False
        return
    with held:
        yield True


def is_claimed(folder: Path) -> bool:
    """Whether some process runs a cell.

    Args:
        folder (Path): Folder of the cell.
    """
    if not (folder / LOCK).exists():  # nobody ever has
        return False
    with claim(folder, patience=0) as mine:
        return not mine
