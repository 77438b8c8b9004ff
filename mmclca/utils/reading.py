# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Files that a user names, read without waiting for a pipe or a device."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import BinaryIO

from mmengine import fileio


@contextmanager
def open_file(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Open a file to read it.

    Raises:
        OSError: If it cannot be opened, or is a pipe, a device, a socket or a
            folder.
    """
    with open(path, 'rb', opener=_open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            reason = 'No regular file but a pipe, device or socket'
            raise OSError(errno.EINVAL, reason, str(path))
        yield file


def _open_at_once(path, flags: int) -> int:
    # opening a pipe else waits until somebody writes to it
    return os.open(path, flags | os.O_NONBLOCK)


def read_bytes(path: str | os.PathLike) -> bytes:
    """Read a file, or an address that mmengine reads.

    Raises:
        OSError: See :func:`open_file`.
    """
    if '://' in str(path):
        return fileio.get(path)
    with open_file(path) as file:
        return file.read()


def read_lines(path: str | os.PathLike) -> list[str]:
    """Read the lines of a text in UTF-8, without their ends.

    Raises:
        OSError: See :func:`open_file`.
    """
    return [x.rstrip('\r\n') for x in StringIO(read_bytes(path).decode())]
