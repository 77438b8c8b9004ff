# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The training on a page, in its own process."""

from collections.abc import Callable
from html import escape
from threading import Lock, Thread

from mmclca.errors import Error
from mmclca.utils.events import LineEvent, ProgressEvent, StepEvent

from .process import ChildProcess
from .progress import FitProgress

STOPPED = 'Stopped. The training can be resumed.'


class Job:
    """The training of a page; a second one is refused until it ends.

    Attributes:
        name (str): Name of the model.
        lines (list[str]): Output of ``fit``.
    """

    def __init__(self) -> None:
        self.name = ''
        self.lines: list[str] = []
        self._progress = FitProgress()
        self._process: ChildProcess | None = None
        self._lock, self._reader, self._waiting = Lock(), Thread(), ''
        self._after: Callable[[], None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process may print more lines, or work follows it."""
        return self._reader.is_alive()

    @property
    def has_failed(self) -> bool:
        """Whether the process has ended with an error."""
        return bool(self._process and self._process.failure)

    def start(
        self,
        name: str,
        settings: dict,
        after: Callable[[], None] | None = None,
    ) -> None:
        """Start ``fit`` with settings; raise ``Error`` if it runs.

        ``after`` is called if the user stops it.
        """
        with self._lock:
            if self.is_running:
                raise Error(
                    f'{self.name} is still training. Please wait until it '
                    'ends, or cancel it.'
                )
            self.name, self.lines, self._progress = name, [], FitProgress()
            self._waiting, self._after = '', after
            self._process = ChildProcess('fit', settings)
            self._reader = Thread(
                target=self._read, args=(self._process,), daemon=True
            )
            self._reader.start()

    def _read(self, process: ChildProcess) -> None:
        """Take lines and progress from the process until it ends."""
        for event in process.events():
            if isinstance(event, LineEvent):
                self.lines = [*self.lines, event.message]
            elif isinstance(event, StepEvent | ProgressEvent):
                self._progress.update(event)
        after = self._after
        if self._waiting and after:
            self._waiting = 'Writing the report ...'
            after()

    def stop(self) -> None:
        """Ask the process to end soon; a later training resumes."""
        with self._lock:
            if self._process and self.is_running and not self._waiting:
                self._waiting = 'Stopping ...'
                self._process.stop()

    def cancel(self) -> None:
        """End the process, and wait for its end."""
        self._after = None
        self.stop()
        if self.is_running:
            self._reader.join()

    def describe(self) -> str:
        """Describe the state in HTML, with a bar and the remaining time."""
        if self._process is None:
            return ''
        if self.is_running:
            return self._waiting or self._progress.describe()
        if failure := self._process.failure:
            # the content of a tag is not read as Markdown, such as a link
            return f'<div>Training failed: {escape(failure)}</div>'
        return STOPPED if self._process.was_stopped else 'Done.'
