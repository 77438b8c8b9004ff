# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Files that no reader finds half written, whatever ends the writer."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

MIB = 2**20
Written = TypeVar('Written')
# what a writer that was killed leaves, as named below
PARTIAL = '.*.' + '[0-9a-f]' * 32 + '*'
WHOLE = '.whole'  # files of a folder that are to be in it, all or none


def replace_file(
    path: Path, write: Callable[[Path], Written], sync: bool = True
) -> Written:
    """Write a file under another name, then rename it.

    Readers find the whole file or none, on network file systems too, and of
    many writers each leaves a whole one. Where writing fails, what had the
    name before keeps it.

    Args:
        path (Path): The file; its folder is made.
        write (Callable): Writes to the path that it is given, whose suffix
            is that of the file.
        sync (bool): Whether it is on disk before it has its name, as a file
            must be that outlives the machine's next failure of power.
            Defaults to True.

    Returns:
        What ``write`` returned.

    Raises:
        OSError: If it cannot be written, as on a full disk.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f'.{path.stem}.{uuid4().hex}{path.suffix}')
    try:
        written = write(partial)
        if sync:
            _sync(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    if sync:
        with suppress(OSError):  # not every file system syncs folders
            _sync(path.parent)
    return written


def replace_bytes(path: Path, content: bytes, sync: bool = True) -> None:
    """Write bytes to a file; see :func:`replace_file`.

    Args:
        path (Path): The file.
        content (bytes): Its content.
        sync (bool): See there. Defaults to True.

    Raises:
        OSError: If it cannot be written; says what is needed and what is
            free.
    """
    try:
        replace_file(path, lambda part: part.write_bytes(content), sync)
    except OSError as error:
        folder = next(parent for parent in path.parents if parent.is_dir())
        free = shutil.disk_usage(folder).free
        raise OSError(
            error.errno,
            f'{path} cannot be written: {error.strerror} (it takes '
            f'{len(content) / MIB:.1f} MiB, {free / MIB:.1f} MiB are free)',
        ) from error


def replace_text(path: Path, text: str) -> None:
    """Write a text to a file; see :func:`replace_bytes`.

    Args:
        path (Path): The file.
        text (str): Its content.
    """
    replace_bytes(path, text.encode())


def remove_partial_files(folder: Path) -> None:
    """Remove what writers that were killed left in a folder.

    Args:
        folder (Path): The folder, to which no process is writing.
    """
    for partial in folder.glob(PARTIAL):
        partial.unlink(missing_ok=True)


def replace_files(folder: Path, files: Path) -> None:
    """Replace files of a folder in one step, whatever ends the writer.

    Args:
        folder (Path): The folder.
        files (Path): A folder in it with the new files, which goes; an empty
            one stands for a file that is no more.

    Raises:
        OSError: If they cannot be moved.
    """
    finish_replacing(folder)
    files.rename(folder / WHOLE)  # the step
    finish_replacing(folder)


def finish_replacing(folder: Path) -> None:
    """Go on with :func:`replace_files` where it was killed.

    Who reads several files of the folder calls this before.

    Args:
        folder (Path): The folder.
    """
    if not (folder / WHOLE).is_dir():
        return
    for path in (folder / WHOLE).iterdir():
        with suppress(FileNotFoundError):  # another process was quicker
            if path.stat().st_size == 0:
                (folder / path.name).unlink(missing_ok=True)
                path.unlink()
            else:
                os.replace(path, folder / path.name)
    with suppress(FileNotFoundError):
        (folder / WHOLE).rmdir()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
