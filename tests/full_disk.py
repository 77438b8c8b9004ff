# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Disks that refuse to write, and what is in a folder."""

import ctypes
import errno
import os
import re
import resource
from contextlib import contextmanager
from hashlib import sha256

import pytest

# capabilities of root to ignore permissions, DAC_OVERRIDE, DAC_READ_SEARCH
OVERRIDE = 1 << 1 | 1 << 2


@contextmanager
def file_size_limit(num_bytes):
    """Make writes beyond a size fail, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def refused(name, number):
    """Make a function of ``os`` fail, as a disk may report late."""

    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, name, fail)
        yield


@contextmanager
def read_only(folder):
    """Remove all permissions to write below a folder, also from root."""
    places = [place for place, *_ in os.walk(folder)]
    modes = [os.stat(place).st_mode for place in places]
    for place, mode in zip(places, modes, strict=True):
        os.chmod(place, mode & ~0o222)
    try:
        with _without(OVERRIDE) if os.geteuid() == 0 else _without(0):
            yield
    finally:
        for place, mode in zip(places, modes, strict=True):
            os.chmod(place, mode)


@contextmanager
def _without(capabilities):
    """Drop effective capabilities of this thread."""
    if not capabilities:
        yield
        return
    libc, head = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522, 0)
    own = (ctypes.c_uint32 * 6)()
    libc.capget(head, own)
    whole = own[0]
    own[0] &= ~capabilities
    assert libc.capset(head, own) == 0
    try:
        yield
    finally:
        own[0] = whole
        libc.capset(head, own)


def full_disk(random, folder, size):
    """Return a context whose disk refuses an output with ``size`` bytes."""
    return random.choice(
        [
            lambda: file_size_limit(random.randrange(size)),
            lambda: refused('fsync', errno.ENOSPC),
            lambda: refused('replace', errno.EDQUOT),
            lambda: read_only(folder),
        ]
    )()


def contents(folder, skipped='$'):
    """Return the SHA-256 of all files below a folder, by relative path.

    Paths starting with the pattern ``skipped`` are left out.
    """
    files = [path for path in folder.rglob('*') if path.is_file()]
    return {
        name: sha256((folder / name).read_bytes()).hexdigest()
        for name in (str(path.relative_to(folder)) for path in files)
        if not re.match(skipped, name)
    }
