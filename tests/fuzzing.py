# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Change files at random, and count the changes that a reader withstands.

A reader withstands a change if it returns, or raises an error that commands
print in one clear line with exit code 2, within limits on time and memory.
"""

import json
import re
import resource
import signal
import warnings
from contextlib import contextmanager, redirect_stderr
from copy import deepcopy
from io import StringIO
from math import inf, nan
from pathlib import Path

from hostile import SEED
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from mmclca.cli.errors import describe_error
from mmclca.cli.run_program import prepare_process
from mmclca.errors import is_wrong_input

SECONDS, BYTES, WARNINGS = 60, 2**31, 5
# Python's own errors, which do not say what is wrong with a file
UNCLEAR = re.compile(r'(.*: )?(Attribute|Index|Key|Type)Error: ')
NUMBERS = [0, -1, 1, 2**31, -(2**63), 10**30, 0.5, 1e308, -inf, nan]
TEXTS = ['', '\0', '\ud800', '\u202e', 'é', '../..', '/dev/zero', 'x' * 9999]
ODD = st.recursive(
    st.sampled_from([None, True, *NUMBERS, *TEXTS]) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
DEEP = json.loads('[' * 150 + ']' * 150)
STATM = Path('/proc/self/statm')  # Linux only
BYTES_OF = [b'\0', b'\xff' * 4, b'\x7f\xff\xff\xff', b'\0\0\0\x80', b'9' * 9]
EDIT = st.tuples(
    st.sampled_from(['over', 'over', 'cut', 'twice', 'insert', 'end']),
    st.floats(0, 0.2) | st.floats(0, 1),
    st.integers(1, 64),
    st.sampled_from(BYTES_OF) | st.binary(min_size=1, max_size=8),
)


def places(tree, place=()):
    """Yield the paths to all values inside dicts and lists."""
    pairs = enumerate(tree) if isinstance(tree, list) else ()
    for key, value in tree.items() if isinstance(tree, dict) else pairs:
        yield (*place, key)
        yield from places(value, (*place, key))


def replaced(tree, place, how, value):
    """Copy a tree; replace or remove the value at a place, or add one."""
    tree = inner = deepcopy(tree)
    *outer, last = place
    for key in outer:
        inner = inner[key]
    if how == 'remove':
        del inner[last]
    else:
        inner[last] = [inner[last], value] if how == 'add' else value
    return tree


def changed(tree):
    """Strategy for a tree of dicts and lists with an odd value."""
    hows = st.sampled_from(['replace', 'replace', 'remove', 'add'])
    odd = ODD | st.just(DEEP)
    place = st.sampled_from([*places(tree)])
    return odd | st.builds(replaced, st.just(tree), place, hows, odd)


def edited(content, edits):
    for how, at, length, new in edits:
        start = int(at * len(content))
        part, rest = content[start : start + length], content[start + length :]
        parts = {
            'over': new + content[start + len(new) :],
            'cut': rest,
            'twice': part + part + rest,
            'insert': new + part + rest,
            'end': b'',
        }
        content = content[:start] + parts[how]
    return content


def mutated(*contents):
    """Strategy for one of several contents with changed bytes."""
    edits = st.lists(EDIT, min_size=1, max_size=4)
    return st.builds(edited, st.sampled_from(contents), edits)


def one_of(files, change):
    """Strategy for a name and its changed content, from pairs or a dict."""
    pairs = files.items() if isinstance(files, dict) else files
    return st.one_of(st.tuples(st.just(x), change(y)) for x, y in pairs)


@contextmanager
def bounded():
    """Raise if code takes long or much memory."""

    def stop(*_):
        raise TimeoutError(f'no end after {SECONDS} s')

    before = signal.signal(signal.SIGALRM, stop)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    if STATM.exists():
        pages = int(STATM.read_text().split()[0])
        most = pages * resource.getpagesize() + BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)


def problem_of(read, case, clear):
    """Return why a reader does not withstand a case, or an empty text."""
    text, said, shown = '', [], StringIO()
    try:
        with bounded(), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter('always')
            prepare_process()
            with redirect_stderr(shown):
                read(case)
    except Exception as error:
        if not is_wrong_input(error):
            return f'{type(error).__name__}: {error}'
        text = describe_error(error)
        if not text or (clear and UNCLEAR.match(text)):
            return f'unclear: {text}'
    return f'{len(said)} warnings' if len(said) > WARNINGS else ''


def fuzz(attack, name, tries, strategy, read, clear=True):
    """Read ``tries`` cases of a strategy, and add a row to the table.

    ``clear`` refuses errors of Python that do not name the problem.
    """
    failed, count = [], 0

    @seed(SEED)
    @settings(
        max_examples=tries,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(strategy)
    def attempt(case):
        nonlocal count
        count += 1
        if problem := problem_of(read, case, clear):
            failed.append(f'{problem:.200}\n  {case!r:.300}')

    attempt()
    attack.record(name, count, count - len(failed))
    assert not failed, '\n'.join(failed[:9])
