# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Watch that a command changes no input, and opens nothing else."""

import os
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

from full_disk import contents, read_only
from tiny_run import ROOT

# the system, the libraries and their caches
SYSTEM = (
    *map(Path, ('/dev', '/etc', '/lib', '/proc', '/sys', '/usr')),
    *(Path(x).resolve() for x in (sys.prefix, sys.base_prefix, ROOT)),
    *(Path.home() / x for x in ('.cache', '.config', '.matplotlib')),
)
opened, watched = set(), []


def _note(event, arguments):
    if watched and event == 'open' and isinstance(arguments[0], str | bytes):
        opened.add(os.path.realpath(os.fsdecode(arguments[0])))


sys.addaudithook(_note)


@contextmanager
def only_reading(folder, words):
    """Fail if a command changes its inputs or opens other files.

    Inputs are the files and folders in ``folder`` named by ``words``. They
    are read-only.
    """
    inputs = [(folder / x).resolve() for x in words if (folder / x).exists()]
    places = [x for x in inputs if x.is_dir()]
    before, own = [_state(x) for x in places], {*folder.rglob('*')}
    with ExitStack() as stack:
        for place in places:
            stack.enter_context(read_only(place))
        opened.clear()
        watched.append(folder)
        stack.callback(watched.clear)
        yield
    assert [_state(x) for x in places] == before
    foreign = [
        path
        for path in filter(Path.is_file, map(Path, opened))
        if not any(path.is_relative_to(x) for x in (*SYSTEM, *inputs))
        and path.suffix != '.log'  # of an earlier command in this process
        and (path in own or not path.is_relative_to(tempfile.gettempdir()))
    ]
    assert not foreign, foreign


def _state(place):
    """Return names, sizes, times and hashes of everything in a folder."""
    found = {
        str(x): (x.lstat().st_size, x.lstat().st_mtime_ns)
        for x in [place, *place.rglob('*')]
    }
    return found, contents(place)
