# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit in its own process, which reports to the page and ends with it."""

import os
import re
import subprocess
import sys
from datetime import timedelta
from html import escape
from pathlib import Path
from signal import SIGINT, SIGKILL
from threading import Lock, Thread

from mmclca.utils.child import GRACE, INTERRUPTED

# the command prints its errors in one line
PROGRAM = (
    'from mmclca.utils.child import attach; attach(); '
    'from mmclca.cli.verbs import main; main()'
)
EXPORT = sys.executable, '-m', 'mmclca', 'export', '--web'
PIPES = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
# Ctrl-C reaches only the page, which then stops the fit
PIPES |= dict(stderr=subprocess.STDOUT, start_new_session=True)
STOPPED = 'Stopped. Press Fit to resume.'
ENDS = {0: 'Done.', INTERRUPTED: STOPPED, -SIGINT: STOPPED}


class Job:
    """The fit of a page; a second one is refused until the first one ends.

    Attributes:
        name (str): Name of the model.
        lines (list[str]): Printed lines.
    """

    def __init__(self):
        self.name, self.lines, self._step = '', [], None
        self._process, self._lock = None, Lock()
        self._reader = Thread()

    @property
    def is_running(self) -> bool:
        """Whether the process may print more lines."""
        return self._reader.is_alive()

    @property
    def has_failed(self) -> bool:
        """Whether the process has ended with an error."""
        code = self._process and self._process.returncode
        return code not in (None, *ENDS)

    def start(self, name: str, *words: str | Path) -> None:
        """Start ``fit`` with arguments; raise ``ValueError`` if it runs."""
        call = [sys.executable, '-c', PROGRAM, 'fit', *map(str, words)]
        with self._lock:
            if self.is_running:
                raise ValueError(
                    f'{self.name} is being fitted. Please wait until the fit '
                    'ends, or cancel it.'
                )
            self.name, self.lines, self._step = name, [], None
            self._process = subprocess.Popen(call, **PIPES)
            given = dict(args=(self._process,), daemon=True)
            self._reader = Thread(target=self._read, **given)
            self._reader.start()

    def _read(self, process: subprocess.Popen) -> None:
        for content in process.stdout:
            line = content.decode(errors='replace').rstrip()
            self._step = _step(line)
            if line and self._step is None:
                self.lines = [*self.lines, line]
        process.wait()

    def cancel(self) -> None:
        """End the process; a later fit resumes."""
        if self.is_running:
            self._process.stdin.close()
            self._reader.join(2 * GRACE)
            if self.is_running:
                os.killpg(self._process.pid, SIGKILL)
                self._reader.join()

    def describe(self) -> str:
        """Describe the state in HTML, with a bar and the remaining time."""
        if self._process is None:
            return ''
        if self.is_running:
            return _bar(*self._step or ('Working', 0, timedelta()))
        code = self._process.returncode
        why = ''.join(self.lines[-1:]).rpartition('error: ')[2]
        if code == -SIGKILL:
            why = 'the process was killed, probably because memory ran out'
        # the content of a tag is not read as Markdown, such as a link
        return ENDS.get(code) or f'<div>The fit failed: {escape(why)}</div>'


def _step(line: str) -> tuple[str, float, timedelta] | None:
    """Parse a progress line; return None for other lines."""
    try:
        start, title, share, seconds = line.split('\t')
        step = title, float(share), timedelta(seconds=float(seconds))
    except (OverflowError, ValueError):
        return None
    return None if start else step


def _bar(title: str, share: float, left: timedelta) -> str:
    text = f': {share:.0%}, time left {left}' if left else ' ...'
    return (
        f'<progress value="{share}" style="width: 100%" '
        f'aria-label="Progress"></progress><br>{escape(title)}{text}'
    )


def export(model: Path, photos: Path, name: str) -> str:
    """Write the web app of a model; return its accuracy, or raise."""
    words = [*EXPORT, model, '--photos', photos, '--name', name]
    text = dict(text=True, errors='replace')
    ended = subprocess.run(words, capture_output=True, **text)
    if ended.returncode:
        *_, why = ended.stderr.split('error: ')
        raise ValueError(f'The web app could not be exported: {why}')
    # accuracy, and agreement with the model
    return '\n'.join(re.findall('^A.+', ended.stdout, re.M))
