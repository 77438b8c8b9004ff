# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Console output and log file, without changes to the host process."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from enum import Enum
from io import StringIO, TextIOBase
from pathlib import Path
from typing import TextIO

import cv2
from mmengine.logging import MessageHub, MMLogger
from mmengine.registry import DefaultScope
from mmpretrain.visualization import UniversalVisualizer
from rich import get_console
from rich.live import Live
from torch import multiprocessing

from mmclca.engine.runner import SafeRunner
from mmclca.utils.events import LineEvent, ProgressEvent, StepEvent, get_parent
from mmclca.utils.messages import print_safe, printable, spinner

# mmengine keeps named global instances and uses the newest one
MANAGED = DefaultScope, MessageHub, MMLogger, UniversalVisualizer


class Step(str, Enum):
    """Steps of a fit, in order."""

    CHECK = 'Checking the photos'
    FIRST_MODEL = 'Training a first model'
    FINE_TUNE = 'Fine-tuning'
    LATENCY = 'Measuring the latency'


class Log(TextIOBase):
    """Print lines on the screen and to a log file.

    In a child process, the parent gets the lines as events instead.

    Within its context, messages to mmengine's current logger go to the file
    alone. Text is buffered until :meth:`open` gives it a file, so a
    refused call leaves no file.

    Attributes:
        is_verbose (bool): Whether the screen shows technical lines, too. A
            parent always gets them.
    """

    def __init__(self):
        self.screen, self.bars = sys.stdout, sys.stderr
        self.parent = get_parent()
        self.is_verbose = self.parent is not None
        self.file, self._isolation = StringIO(), isolation(self)

    def __enter__(self) -> 'Log':
        self._isolation.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._isolation.__exit__(*error)
        self.file.close()
        self.file = StringIO()  # for late writers

    def open(self, path: Path) -> None:
        """Append the buffered text and all further text to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        buffered = self.file.getvalue()
        self.file = path.open('a', encoding='utf-8', errors='replace')
        self.file.write(buffered)

    def write(self, text: str) -> int:
        """Write to the file, or to the buffer."""
        return self.file.write('\n'.join(map(printable, text.split('\n'))))

    def flush(self) -> None:
        """See ``io.TextIOBase``."""
        self.file.flush()

    def status(self, title: str) -> Live:
        """Show a spinner, see :func:`mmclca.utils.messages.spinner`.

        A parent, if any, gets the title.
        """
        if self.parent:
            self.parent.send(ProgressEvent(title, 0, seconds_left=None))
        return spinner(title, self.bars)

    @property
    def is_console(self) -> bool:
        """Whether a person reads the lines at a command line.

        False if the process reports to a parent, such as the web page, where
        command-line options do not exist.
        """
        return self.parent is None

    def print(self, *lines: str) -> None:
        """Print lines on the screen and to the file."""
        # TextIOBase is not declared as a TextIO
        print_safe(*lines, file=self)  # type: ignore[arg-type]
        if self.parent is None:
            print_safe(*lines, file=self.screen)
            return
        for line in lines:
            self.parent.send(LineEvent(printable(str(line))))

    def print_lines(self, lines: Iterable[str]) -> None:
        """Print each line as soon as it is known."""
        for line in lines:
            self.print(line)

    def add_details(self, lines: Iterable[str]) -> None:
        """Write technical lines to the file; print them if verbose."""
        for line in lines:
            if self.is_verbose:
                self.print(line)
            else:
                # TextIOBase is not declared as a TextIO
                print_safe(line, file=self)  # type: ignore[arg-type]

    def print_plain(self, lines: Iterable[str]) -> None:
        """Print lines in place of technical ones, unless verbose."""
        for line in lines:
            if not self.is_verbose:
                print_safe(line, file=self.screen)

    def begin(self, step: Step) -> None:
        """Tell the parent, if any, that a step begins."""
        if self.parent:
            self.parent.send(StepEvent(step.value))


def find_log() -> Log:
    """Return the log of :func:`redirected_output`, or a new one."""
    return sys.stdout if isinstance(sys.stdout, Log) else Log()


@contextmanager
def redirected_output() -> Iterator[None]:
    """Send library output to a fit's log file.

    Only for commands: this replaces standard output and error.
    """
    log, console = Log(), get_console()
    if log.bars.isatty():
        console.file = log.bars
    try:
        with redirect_stdout(log), redirect_stderr(log):
            yield
    finally:
        console.file = None  # standard output


@contextmanager
def isolation(file: TextIO) -> Iterator[None]:
    """Make mmengine log to a file, and restore its global state at the end.

    This removes the logger and all newer global instances, and restores the
    settings changed by a ``Runner``.
    """
    before = {managed: dict(managed._instance_dict) for managed in MANAGED}
    start = multiprocessing.get_start_method(allow_none=True)
    threads = cv2.getNumThreads()
    for handler in MMLogger.get_instance(f'mmclca-{id(file)}').handlers:
        handler.setStream(file)
    try:
        with file_limit():
            yield
    finally:
        for managed, instances in before.items():  # the last one is current
            managed._instance_dict.clear()
            managed._instance_dict.update(instances)
        multiprocessing.set_start_method(start, force=True)
        cv2.setNumThreads(threads)


@contextmanager
def file_limit() -> Iterator[None]:
    """Restore the limit of open files, which mmengine changes.

    There is none on Windows.
    """
    try:
        import resource
    except ImportError:
        yield
        return
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


class FitRunner(SafeRunner):
    """Runner whose messages go to the log of a fit."""

    def build_logger(self, *args, **options) -> MMLogger:
        """Create a logger that writes where the current one does."""
        current = MMLogger.get_current_instance().handlers[0]
        logger = super().build_logger(*args, **options)
        logger.handlers[0].setStream(current.stream)
        return logger
