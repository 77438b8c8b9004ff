# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Print safely, show progress, and validate settings with clear errors."""

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
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
from mmclca.languages import text
from mmclca.utils.events import ProgressEvent, get_parent

# control characters, marks of the text direction, and bytes of file names
# without UTF-8
_CONTROLS = re.compile(
    '[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]'
)


def printable(line: str) -> str:
    r"""Replace line breaks and control characters by escapes as ``\x1b``."""
    return _CONTROLS.sub(
        lambda match: match[0].encode('unicode_escape').decode(), line
    )


def print_safe(*lines, file: TextIO | None = None) -> None:
    """Print lines without control characters, see :func:`printable`."""
    for line in lines:
        print(printable(str(line)), file=file or sys.stdout, flush=True)


def warn(message: str) -> None:
    """Print a warning in one line to standard error."""
    print_safe(f'Warning    {message}', file=sys.stderr)


class Bar(Progress):
    """Temporary progress bar in a terminal or notebook.

    It replaces the bars of MMPretrain, which stay at 0% with current versions
    of rich. In a process that sends events to its parent, nothing is drawn:
    the progress is sent ten times per second.
    """

    def __init__(self):
        self.parent = get_parent()
        # the global console may have been created without a terminal
        console = Console(
            file=get_console().file, quiet=self.parent is not None
        )
        self.is_shown = bool(
            self.parent or console.is_terminal or console.is_jupyter
        )
        super().__init__(
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            disable=not self.is_shown,
        )

    def get_renderable(self) -> RenderableType:
        """Draw the bar, and send the progress; see ``rich``."""
        if self.parent:
            for task in self.tasks:
                event = ProgressEvent(
                    title=task.description,
                    share=task.percentage / 100,
                    seconds_left=task.time_remaining,
                )
                self.parent.send(event)
        return super().get_renderable()

    def follow(
        self, sequence: Iterable, description: str, total: float | None
    ) -> Iterator:
        """Yield the items of a sequence; show the bar until the last one."""
        with self:
            yield from self.track(sequence, total, description=description)


def track(
    sequence: Iterable, description: str = '', total: float | None = None
) -> Iterable:
    """Iterate over a sequence with a progress bar, see :class:`Bar`."""
    bar = Bar()
    if bar.is_shown:
        return bar.follow(sequence, description, total)
    return iter(sequence)


def spinner(title: str, file: TextIO) -> Live:
    """Return a context manager that shows a spinner on a terminal."""
    return Live(
        Spinner('dots', title),
        console=Console(file=file),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def did_you_mean(
    name: object, candidates: Collection[str], limit: int = 1
) -> str:
    """Suggest similar names in brackets; empty without any."""
    close = get_close_matches(str(name), candidates, limit, cutoff=0.5)
    return f' (do you mean {" or ".join(close)}?)' if close else ''


def join_first(names: Iterable, limit: int = 8, between: str = ', ') -> str:
    """Join the first names and the number of further ones."""
    names = [*map(str, names)]
    joined = between.join(names[:limit])
    if len(names) <= limit:
        return joined
    return text('count.more', names=joined, number=len(names) - limit)


def suggest_choices(name: object, choices: Collection[str]) -> str:
    """Describe an unknown name: a similar one, and all known ones."""
    hint = did_you_mean(name, choices)
    return f'no {name!r}{hint}; choose from {", ".join(choices)}'


def check_integer(
    minimum: int = 1, maximum: int | None = None, **settings: int
) -> None:
    """Raise if a setting is not an integer in a range."""
    for name, value in settings.items():
        is_integer = type(value) is int
        _check_range(name, value, is_integer, 'an integer', minimum, maximum)


def check_number(
    minimum: float = 0, maximum: float | None = None, **settings
) -> None:
    """Raise if a setting is not a number in a range."""
    for name, value in settings.items():
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        _check_range(name, value, is_number, 'a number', minimum, maximum)


def _check_range(
    name: str,
    value,
    has_type: bool,
    type_name: str,
    minimum: float,
    maximum: float | None,
) -> None:
    end = inf if maximum is None else maximum
    if not (has_type and minimum <= value <= end):
        top = 'or more' if maximum is None else f'to {maximum}'
        raise Error(f'{name}={value!r} must be {type_name}, {minimum} {top}')


def check_choice(choices: Collection, **settings) -> None:
    """Raise if a setting is not a known name."""
    for name, value in settings.items():
        if value not in choices:
            raise Error(f'{name}: {suggest_choices(value, choices)}')


def check_ascending(
    name: str, indices: Sequence[int] | int, count: int
) -> tuple[int, ...]:
    """Return ascending integers below ``count`` as a tuple, or raise."""
    several = indices if isinstance(indices, Sequence) else [indices]
    layers = tuple(several)
    inside = all(type(i) is int and 0 <= i < count for i in layers)
    if not inside or list(layers) != sorted(set(layers)):
        raise Error(
            f'{name}={indices!r} must be ascending, different layers '
            f'(integers) within 0 to {count - 1}'
        )
    return layers
