# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Messages of one line: settings refused, close names, safe to print; bars."""

import re
import sys
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from math import inf
from numbers import Real
from typing import TextIO

from rich import get_console

from .lazy import lazy

mmpretrain = lazy('mmpretrain')

# control characters, those that turn the direction of a text, and bytes of
# a file's name that are no UTF-8
_CONTROLS = re.compile(
    '[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]'
)


def printable(text: str) -> str:
    r"""Return a text in one line whose control characters are shown, as
    ``\x1b``."""
    return _CONTROLS.sub(
        lambda found: found[0].encode('unicode_escape').decode(), text
    )


def say(*lines, file: TextIO | None = None) -> None:
    """Print lines as :func:`printable` gives them.

    Args:
        *lines: Texts, or what becomes one.
        file (TextIO, optional): Where to. Defaults to None: standard output.
    """
    for line in lines:
        print(printable(str(line)), file=file or sys.stdout, flush=True)


def track(
    sequence: Iterable, description: str = '', total: float | None = None
) -> Iterable:
    """Go through a sequence; with MMPretrain's bar on a terminal or notebook.

    Into a file nothing is written.
    """
    console = get_console()
    if console.is_terminal or console.is_jupyter:
        return mmpretrain.utils.track(sequence, description, total)
    return iter(sequence)


def did_you_mean(name: object, known: Collection[str], most: int = 1) -> str:
    """Return the names that come close, in brackets; empty if none does."""
    close = get_close_matches(str(name), known, most, cutoff=0.5)
    return f' (do you mean {" or ".join(close)}?)' if close else ''


def first_of(names: Iterable, most: int = 8, between: str = ', ') -> str:
    """Join the first names, and say how many more there are."""
    names = [*map(str, names)]
    more = f' and {len(names) - most} more' if len(names) > most else ''
    return between.join(names[:most]) + more


def not_one_of(name: object, known: Collection[str]) -> str:
    """Answer a name that is not known: by a close one, and all."""
    hint = did_you_mean(name, known)
    return f'no {name!r}{hint}; there are {", ".join(known)}'


def integer(least: int = 1, most: int | None = None, **settings: int) -> None:
    """Refuse settings that are not integers, or out of a range."""
    for name, value in settings.items():
        _within(least, most, name, value, type(value) is int, 'an integer')


def number(least: float = 0, most: float | None = None, **settings) -> None:
    """Refuse settings that are not numbers, or out of a range."""
    for name, value in settings.items():
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        _within(least, most, name, value, is_number, 'a number')


def _within(least, most, name: str, value, fits: bool, kind: str) -> None:
    if not (fits and least <= value <= (inf if most is None else most)):
        top = 'or more' if most is None else f'to {most}'
        raise ValueError(f'{name}={value!r} must be {kind}, {least} {top}')


def one_of(known: Collection, **settings) -> None:
    """Refuse settings that are none of the names known."""
    for name, value in settings.items():
        if value not in known:
            raise ValueError(f'{name}: {not_one_of(value, known)}')


def ascending(
    name: str, given: Sequence[int] | int, count: int
) -> tuple[int, ...]:
    """Refuse what is not ascending integers below ``count``; a tuple."""
    listed = isinstance(given, Sequence)
    layers = tuple(given) if listed else (given,)
    inside = all(type(i) is int and 0 <= i < count for i in layers)
    if not inside or list(layers) != sorted(set(layers)):
        raise ValueError(
            f'{name}={given!r} must be ascending, different layers '
            f'(integers) within 0 to {count - 1}'
        )
    return layers
