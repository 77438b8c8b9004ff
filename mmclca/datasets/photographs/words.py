# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What is said of photographs that are not used."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator

_MOST = 3


def lines_of(checked) -> Iterator[str]:
    """What to tell whoever gave the photographs, a line each.

    Args:
        checked (Checked): What became of them.
    """
    source = checked.photographs.source
    folder = source if os.path.isdir(source) else os.path.dirname(source)

    def short(path: str) -> str:
        path = os.path.relpath(path, folder)
        return os.fsencode(path).decode(errors='replace')

    left_out = checked.photographs.left_out
    for reason, number in Counter(left_out.values()).items():
        paths = (short(p) for p, other in left_out.items() if other == reason)
        yield f'left out: {_files(number)} {reason} ({some(paths)})'
    unread = (f'{short(p)}: {why}' for p, why in checked.unread.items())
    same = (f'{short(p)} is {short(kept)}' for p, kept in checked.doubled)
    several = (' is '.join(map(short, paths)) for paths in checked.conflicts)
    leaks = (f'{short(p)} is {short(kept)}' for p, kept in checked.leaks)
    untrained = (f'{name}, {n}' for name, n in checked.untrained.items())
    alike = (' and '.join(names) for names in checked.alike)
    for names, what in (
        (unread, 'cannot be read'),
        (same, 'doubled, and used once'),
        (several, 'pictures in several classes, used in none'),
        (leaks, 'left out of training, as validation or test has them too'),
        (untrained, 'classes without a photograph to train with, left out'),
        (alike, 'classes whose names differ in capitals or spaces only'),
        (
            checked.split_groups,
            'groups in train that validation or test share',
        ),
        (checked.single, 'classes with one photograph, which is never tested'),
    ):
        names = list(names)
        if names:
            yield f'{what}: {len(names)} ({some(names)})'


def some(names: Iterable[str]) -> str:
    """The first of some names, and how many more there are.

    Args:
        names (Iterable[str]): The names.
    """
    names = list(names)
    more = len(names) - _MOST
    return '; '.join(names[:_MOST]) + (f'; and {more} more' * (more > 0))


def _files(number: int) -> str:
    return f'{number} file{"s" * (number != 1)}'
