# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Events that a child process sends to its parent: one JSON object a line.

The child calls :func:`connect_to_parent`; its parent reads its standard output
with :func:`read_events`.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from threading import Lock, Thread
from typing import Any, TypeAlias

GRACE = 10  # seconds to end before a kill
INTERRUPTED = 130  # exit code, as in shells


@dataclass(frozen=True)
class LineEvent:
    """A line for the user."""

    message: str


@dataclass(frozen=True)
class StepEvent:
    """A step of the work begins."""

    step: str


@dataclass(frozen=True)
class ProgressEvent:
    """Progress within a step.

    Args:
        title (str): Present part of the step.
        share (float): Part that is done, 0 to 1.
        seconds_left (float, optional): Remaining seconds; None if unknown.
    """

    title: str
    share: float
    seconds_left: float | None


@dataclass(frozen=True)
class ResultEvent:
    """The work is done; ``content`` is a JSON value."""

    content: Any


@dataclass(frozen=True)
class ErrorEvent:
    """The work failed.

    Args:
        message (str): One line.
        is_bug (bool): Whether the error is a bug instead of wrong input.
    """

    message: str
    is_bug: bool


Event: TypeAlias = (
    LineEvent | StepEvent | ProgressEvent | ResultEvent | ErrorEvent
)
KINDS: dict[str, type] = dict(
    line=LineEvent,
    step=StepEvent,
    progress=ProgressEvent,
    result=ResultEvent,
    error=ErrorEvent,
)
_NAMES = {event_class: kind for kind, event_class in KINDS.items()}


class Channel:
    """Connection of this process to its parent.

    Args:
        descriptor (int): File descriptor to write to.
    """

    def __init__(self, descriptor: int):
        self._file = open(descriptor, 'wb')  # noqa: SIM115, until the end
        self._lock = Lock()

    def send(self, event: Event) -> None:
        """Send an event; safe in any thread."""
        fields = dict(kind=_NAMES[type(event)], **asdict(event))
        with self._lock:
            self._file.write(json.dumps(fields).encode() + b'\n')
            self._file.flush()


_parent: Channel | None = None


def get_parent() -> Channel | None:
    """Return the channel to the parent; None without a parent that reads."""
    return _parent


def connect_to_parent() -> Channel:
    """Send events to standard output, and end with the parent.

    Only for a process started to be read with :func:`read_events`: what
    libraries print goes to standard error instead. If standard input ends, as
    when the parent is killed, this process is interrupted.
    """
    global _parent
    # a shell lets background jobs, and so their children, ignore SIGINT
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _parent = Channel(os.dup(1))
    os.dup2(2, 1)
    Thread(target=_end_with_parent, daemon=True).start()
    return _parent


def _end_with_parent() -> None:
    """Wait for the end of standard input; interrupt, then kill the process.

    The main thread gets ``KeyboardInterrupt``, to end in order. A process
    that has not ended after ``GRACE`` seconds exits at once.
    """
    os.read(0, 1)
    if sys.platform == 'win32':
        signal.raise_signal(signal.SIGINT)
    else:  # also ends system calls of the main thread
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE)
    os._exit(INTERRUPTED)


def read_events(lines: Iterable[bytes]) -> Iterator[Event]:
    """Yield the events of a child from the lines of its output.

    An incomplete last line, left by a killed child, is skipped.
    """
    for line in lines:
        if line.endswith(b'\n'):
            fields = json.loads(line)
            yield KINDS[fields.pop('kind')](**fields)
