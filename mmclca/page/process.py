# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Child processes: they report events, and end with the page."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from signal import SIGINT
from threading import Thread
from typing import Any

from mmclca.errors import Error
from mmclca.languages import text
from mmclca.utils.events import (
    GRACE,
    INTERRUPTED,
    ErrorEvent,
    Event,
    ResultEvent,
    read_events,
)

from .problems import describe_as_bug

# CREATE_NEW_PROCESS_GROUP of Windows, the same as a new session
NEW_GROUP = 0x200
KILLED = -9  # exit code after SIGKILL, which Windows lacks
COMMAND = [sys.executable, '-m', 'mmclca.page.child']


class ChildProcess:
    """Task in a separate process, see :mod:`mmclca.page.child`.

    It shares the standard error of this process.

    Args:
        task (str): Name of the task.
        settings (dict): Arguments of the task, JSON values.

    Attributes:
        error (ErrorEvent | None): Error, if the task failed.
        content (Any): Result.
    """

    def __init__(self, task: str, settings: dict):
        self.error: ErrorEvent | None = None
        self.content: Any = None
        self._process = subprocess.Popen(
            [*COMMAND, task, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C reaches only the page, which then stops the child
            start_new_session=True,  # ignored on Windows
            creationflags=NEW_GROUP if sys.platform == 'win32' else 0,
        )

    def events(self) -> Iterator[Event]:
        """Yield the events until the process ends."""
        assert self._process.stdout is not None
        for event in read_events(self._process.stdout):
            if isinstance(event, ErrorEvent):
                self.error = event
            elif isinstance(event, ResultEvent):
                self.content = event.content
            yield event
        self._process.wait()

    @property
    def was_stopped(self) -> bool:
        """Whether the process has ended since it was asked to."""
        return self._process.returncode in (INTERRUPTED, -SIGINT)

    @property
    def failure(self) -> str:
        """Why the ended process failed, in one line; else an empty text."""
        code = self._process.returncode
        if code in (None, 0) or self.was_stopped:
            return ''
        if code == KILLED:
            return text('page.killed')
        if self.error is None:
            return describe_as_bug(text('page.exit_code', code=code))
        message = self.error.message
        return describe_as_bug(message) if self.error.is_bug else message

    def stop(self) -> None:
        """Ask the process to end soon."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        Thread(target=self._kill_late, daemon=True).start()

    def _kill_late(self) -> None:
        """Kill the process if it does not end soon.

        It should exit ``GRACE`` seconds after an interruption, unless a
        library blocks it.
        """
        process = self._process
        try:
            process.wait(2 * GRACE)
        except subprocess.TimeoutExpired:
            if sys.platform == 'win32':
                process.kill()  # its workers end with it
            else:
                os.killpg(process.pid, -KILLED)


def run_task(task: str, settings: dict) -> Any:
    """Run a task to its end; return the result, or raise ``Error``."""
    process = ChildProcess(task, settings)
    for _ in process.events():
        pass
    if process.failure:
        raise Error(process.failure)
    return process.content
