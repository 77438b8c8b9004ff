# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Files that no reader finds half written."""

import os
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file under another name, then rename it.

    Readers find the whole file or none, on network file systems too, and of
    many writers each leaves a whole one.

    Args:
        path (Path): The file; its folder is made.
        write (Callable): Writes to the path that it is given, whose suffix
            is that of the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f'.{path.stem}.{uuid4().hex}{path.suffix}')
    try:
        write(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Write a text to a file; see :func:`replace_file`.

    Args:
        path (Path): The file.
        text (str): Its content, on disk before the file has its name.
    """
    replace_file(path, lambda partial: _write_through(partial, text))


def _write_through(path: Path, text: str) -> None:
    with path.open('w', encoding='utf-8') as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
