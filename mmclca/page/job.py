# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit in its own process, which reports to the page and ends with it."""

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
# Ctrl-C in the terminal ends the page first, and the page the fit
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

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process is not None and self._process.poll() is None

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
            Thread(target=self._read, **given).start()

    def _read(self, process: subprocess.Popen) -> None:
        for content in process.stdout:
            line = content.decode(errors='replace').rstrip()
            if line.startswith('\t'):
                self._step = line.split('\t')[1:]
            elif line:
                self.lines, self._step = [*self.lines, line], None

    def cancel(self) -> None:
        """End the process; a later fit resumes."""
        if self.is_running:
            self._process.stdin.close()
            try:
                self._process.wait(2 * GRACE)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def describe(self) -> str:
        """Describe the state in HTML, with a bar and the remaining time."""
        if self._process is None:
            return ''
        if self.is_running:
            return _bar(*self._step or ('Working', '0', '0'))
        code = self._process.returncode
        why = ''.join(self.lines[-1:]).rpartition('error: ')[2]
        if code == -SIGKILL:
            why = 'it was killed, maybe for lack of memory'
        # the content of a tag is not read as Markdown, such as a link
        return ENDS.get(code) or f'<div>The fit failed: {escape(why)}</div>'


def _bar(title: str, share: str, seconds: str) -> str:
    left = timedelta(seconds=float(seconds))
    text = f': {float(share):.0%}, time left {left}' if left else ' ...'
    return (
        f'<progress value="{share}" style="width: 100%" '
        f'aria-label="Progress"></progress><br>{escape(title)}{text}'
    )


def export(model: Path, name: str) -> None:
    """Write the web app of a model, or raise ``ValueError``."""
    words = [*EXPORT, str(model), '--name', name]
    ended = subprocess.run(words, capture_output=True)
    if ended.returncode:
        *_, why = ended.stderr.decode(errors='replace').split('error: ')
        raise ValueError(f'There is no web app: {why}')
