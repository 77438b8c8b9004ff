# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Process that reports its progress to its parent, and ends with it."""

import os
import signal
import time
from threading import Thread

from .messages import Bar

GRACE = 10  # seconds to end before a kill
INTERRUPTED = 130  # exit code, as in shells


def attach() -> None:
    """Report progress to standard output; end this process with its input."""
    Bar.watch = staticmethod(_report)
    Thread(target=_end_with_parent, daemon=True).start()


def _report(title: str, share: float, seconds: float | None) -> None:
    # a single write does not mix with lines of the main thread, which have
    # no tabs
    os.write(1, f'\t{title}\t{share}\t{seconds or 0}\n'.encode())


def _end_with_parent() -> None:
    os.read(0, 1)  # returns if the parent closes the pipe, or is killed
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE)
    os._exit(INTERRUPTED)
