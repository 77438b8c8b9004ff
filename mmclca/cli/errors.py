# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Errors that end a command in one line."""

import errno
import re

# errors of the disk or its permissions, not of the command
DISK = {
    errno.EACCES,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EIO,
    errno.ENOSPC,
    errno.EPERM,
    errno.EROFS,
}


def is_of_disk(error: BaseException | None) -> bool:
    """Return whether an error comes from the disk or its permissions."""
    while error and not (isinstance(error, OSError) and error.errno in DISK):
        error = error.__cause__
    return error is not None


def describe_error(error: BaseException) -> str:
    """Describe wrong input in one line."""
    message = str(error)
    if isinstance(error, OSError) and error.errno == errno.ENOENT:
        message = f'{error.filename} does not exist; check the path'
    elif isinstance(error, OSError) and error.strerror and not error.filename:
        message = error.strerror
    elif 'Original Traceback' in message:  # from a data loader process
        last = message.strip().rpartition('\n')[2]
        message = re.sub(r'^[\w.]+Error: ', '', last)
    return ' '.join(message.split())
