# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Print safely, show progress, and validate settings with clear errors."""

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from math import inf
from numbers import Real
from typing import TextIO

from rich import get_console
from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import Progress
from rich.spinner import Spinner

from mmclca.errors import Error

# progress displays are temporary and do not redirect standard streams
PLAIN = dict(transient=True, redirect_stdout=False, redirect_stderr=False)
# control characters, marks of the text direction, and bytes of file names
# without UTF-8
_CONTROLS = re.compile(
    '[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]'
)


def printable(text: str) -> str:
    r"""Replace line breaks and control characters by escapes as ``\x1b``."""
    return _CONTROLS.sub(
        lambda found: found[0].encode('unicode_escape').decode(), text
    )


def print_safe(*lines, file: TextIO | None = None) -> None:
    """Print lines without control characters, see :func:`printable`."""
    for line in lines:
        print(printable(str(line)), file=file or sys.stdout, flush=True)


def warn(text: str) -> None:
    """Print a warning in one line to standard error."""
    print_safe(f'Warning    {text}', file=sys.stderr)


class Bar(Progress):
    """Temporary progress bar in a terminal or notebook.

    It replaces the bars of MMPretrain, which stay at 0% with current versions
    of rich. A ``watch`` of the class replaces the drawing: it is called with
    title, share done and remaining seconds, ten times per second.
    """

    watch: Callable[[str, float, float | None], None] | None = None

    def __init__(self):
        # the global console may have been created without a terminal
        quiet, file = self.watch is not None, get_console().file
        console = Console(file=file, quiet=quiet)
        self.is_shown = quiet or console.is_terminal or console.is_jupyter
        super().__init__(console=console, disable=not self.is_shown, **PLAIN)

    def get_renderable(self) -> RenderableType:
        """Draw the bar, and report the progress; see ``rich``."""
        for task in self.tasks if self.watch else ():
            share = task.percentage / 100
            self.watch(task.description, share, task.time_remaining)
        return super().get_renderable()


def track(
    sequence: Iterable, description: str = '', total: float | None = None
) -> Iterable:
    """Iterate over a sequence with a progress bar, see :class:`Bar`."""
    bar = Bar()
    if bar.is_shown:
        return _with_bar(bar, sequence, description, total)
    return iter(sequence)


def _with_bar(bar: Bar, sequence, description, total) -> Iterator:
    with bar:
        yield from bar.track(sequence, total, description=description)


def spinner(title: str, file: TextIO) -> Live:
    """Return a context manager that shows a spinner on a terminal."""
    return Live(Spinner('dots', title), console=Console(file=file), **PLAIN)


def did_you_mean(name: object, known: Collection[str], most: int = 1) -> str:
    """Suggest similar names in brackets; empty without any."""
    close = get_close_matches(str(name), known, most, cutoff=0.5)
    return f' (do you mean {" or ".join(close)}?)' if close else ''


def join_first(names: Iterable, most: int = 8, between: str = ', ') -> str:
    """Join the first names and the number of further ones."""
    names = [*map(str, names)]
    more = f' and {len(names) - most} more' if len(names) > most else ''
    return between.join(names[:most]) + more


def describe_unknown(name: object, known: Collection[str]) -> str:
    """Describe an unknown name: a similar one, and all known ones."""
    hint = did_you_mean(name, known)
    return f'no {name!r}{hint}; choose from {", ".join(known)}'


def check_integer(
    least: int = 1, most: int | None = None, **settings: int
) -> None:
    """Raise if a setting is not an integer in a range."""
    for name, value in settings.items():
        _within(least, most, name, value, type(value) is int, 'an integer')


def check_number(
    least: float = 0, most: float | None = None, **settings
) -> None:
    """Raise if a setting is not a number in a range."""
    for name, value in settings.items():
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        _within(least, most, name, value, is_number, 'a number')


def _within(least, most, name: str, value, fits: bool, kind: str) -> None:
    if not (fits and least <= value <= (inf if most is None else most)):
        top = 'or more' if most is None else f'to {most}'
        raise Error(f'{name}={value!r} must be {kind}, {least} {top}')


def check_choice(known: Collection, **settings) -> None:
    """Raise if a setting is not a known name."""
    for name, value in settings.items():
        if value not in known:
            raise Error(f'{name}: {describe_unknown(value, known)}')


def check_ascending(
    name: str, given: Sequence[int] | int, count: int
) -> tuple[int, ...]:
    """Return ascending integers below ``count`` as a tuple, or raise."""
    listed = isinstance(given, Sequence)
    layers = tuple(given) if listed else (given,)
    inside = all(type(i) is int and 0 <= i < count for i in layers)
    if not inside or list(layers) != sorted(set(layers)):
        raise Error(
            f'{name}={given!r} must be ascending, different layers '
            f'(integers) within 0 to {count - 1}'
        )
    return layers
