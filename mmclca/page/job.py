# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit in its own process, which reports to the page and ends with it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from html import escape
from pathlib import Path
from signal import SIGINT, SIGKILL
from threading import Lock, Thread

from mmclca.errors import Error
from mmclca.utils.child import GRACE, INTERRUPTED

from .texts import without_advice

# the command prints its errors in one line
PROGRAM = (
    'from mmclca.utils.child import attach; attach(); '
    'from mmclca.cli.main import main; main()'
)
EXPORT = sys.executable, '-m', 'mmclca', 'export', '--web'
PIPES = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
# Ctrl-C reaches only the page, which then stops the fit
PIPES |= dict(stderr=subprocess.STDOUT, start_new_session=True)
STOPPED = 'Stopped. The training can be resumed.'
ENDS = {0: 'Done.', INTERRUPTED: STOPPED, -SIGINT: STOPPED}
# steps, and how the titles for their parts begin; other titles belong to the
# first model
STEPS = {
    'Checking the photos': 'Checking',
    'Training a first model': '',
    'Fine-tuning': 'Fine-tuning',
    'Measuring the latency': 'Measuring latency',
}


class Job:
    """The training of a page; a second one is refused until it ends.

    Attributes:
        name (str): Name of the model.
        lines (list[str]): Printed lines, without advice for the terminal.
    """

    def __init__(self):
        self.name, self.lines, self._bar = '', [], _Bar()
        self._process, self._lock = None, Lock()
        self._reader, self._waiting = Thread(), ''

    @property
    def is_running(self) -> bool:
        """Whether the process may print more lines, or work follows it."""
        return self._reader.is_alive()

    @property
    def has_failed(self) -> bool:
        """Whether the process has ended with an error."""
        code = self._process and self._process.returncode
        return code not in (None, *ENDS)

    def start(
        self,
        name: str,
        *words: str | Path,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        """Start ``fit`` with arguments; raise ``Error`` if it runs.

        ``after`` is called if the user stops it.
        """
        call = [sys.executable, '-c', PROGRAM, 'fit', *map(str, words)]
        with self._lock:
            if self.is_running:
                raise Error(
                    f'{self.name} is still training. Please wait until it '
                    'ends, or cancel it.'
                )
            self.name, self.lines, self._bar = name, [], _Bar()
            self._waiting, self._after = '', after
            self._process = subprocess.Popen(call, **PIPES)
            process = dict(args=(self._process,), daemon=True)
            self._reader = Thread(target=self._read, **process)
            self._reader.start()

    def _read(self, process: subprocess.Popen) -> None:
        for content in process.stdout:
            line = content.decode(errors='replace').rstrip()
            is_progress = self._bar.read(line)
            shown = '' if is_progress else without_advice(line)
            self.lines = [*self.lines, *filter(None, [shown])]
        process.wait()
        if self._waiting:
            self._waiting = 'Writing the report ...'
            self._after()

    def stop(self) -> None:
        """Ask the process to end soon; a later training resumes."""
        with self._lock:
            if self.is_running and not self._waiting:
                self._waiting = 'Stopping ...'
                self._process.stdin.close()
                Thread(target=self._kill_late, daemon=True).start()

    def _kill_late(self) -> None:
        process = self._process
        try:
            process.wait(2 * GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, SIGKILL)

    def cancel(self) -> None:
        """End the process, and wait for its end."""
        self._after = lambda: None
        self.stop()
        if self.is_running:
            self._reader.join()

    def describe(self) -> str:
        """Describe the state in HTML, with a bar and the remaining time."""
        if self._process is None:
            return ''
        if self.is_running:
            return self._waiting or self._bar.describe()
        code = self._process.returncode
        why = ''.join(self.lines[-1:]).rpartition('error: ')[2]
        if code == -SIGKILL:
            why = 'the process was killed, probably because memory ran out'
        # the content of a tag is not read as Markdown, such as a link
        return ENDS.get(code) or f'<div>Training failed: {escape(why)}</div>'


class _Bar:
    """Progress over all steps of a fit, which never goes back."""

    def __init__(self):
        self.step, self.share, self.title, self.left = 0, 0.0, '', timedelta()

    def read(self, line: str) -> bool:
        """Read a progress line; return False for other lines."""
        try:
            start, title, share, seconds = line.split('\t')
            share, left = float(share), timedelta(seconds=float(seconds))
        except (OverflowError, ValueError):
            return False
        if start:
            return False
        starts = [bool(x) and title.startswith(x) for x in STEPS.values()]
        step = starts.index(True) if any(starts) else 1
        self.step = max(step, self.step)
        share = (self.step + share) / len(STEPS)
        self.share = max(share, self.share)
        self.title, self.left = title, left
        return True

    def describe(self) -> str:
        """Return the bar in HTML, with the present step."""
        name = [*STEPS][self.step]
        part = f' ({self.title})' if self.title not in ('', name) else ''
        left = f', {_words(self.left)} left in this part' if self.left else ''
        return (
            f'<progress value="{self.share}" style="width: 100%" '
            'aria-label="Progress"></progress><br>'
            f'Step {self.step + 1} of {len(STEPS)}: {name}{escape(part)}{left}'
        )


def _words(left: timedelta) -> str:
    """Describe a time in words."""
    minutes = round(left.total_seconds() / 60)
    if minutes < 1:
        return 'less than a minute'
    return f'about {minutes} minute{"s" * (minutes > 1)}'


def export(model: Path, photos: Path, name: str) -> str:
    """Write the web app of a model; return its accuracy, or raise."""
    words = [*EXPORT, model, '--photos', photos, '--name', name]
    text = dict(text=True, errors='replace')
    ended = subprocess.run(words, capture_output=True, **text)
    if ended.returncode:
        *_, why = ended.stderr.split('error: ')
        raise Error(f'The web app could not be exported: {why}')
    # accuracy, and agreement with the model
    return '\n'.join(re.findall('^A.+', ended.stdout, re.M))
