# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train or change a model in its own process."""

from collections.abc import Callable
from html import escape
from threading import Lock, Thread

from mmclca.errors import Error
from mmclca.utils.events import LineEvent, ProgressEvent, StepEvent

from .process import ChildProcess
from .progress import FitProgress

STOPPED = 'Stopped. The training can be resumed.'
UNCHANGED = 'Stopped. The model can be used.'
# labels of lines that describe a change
CHANGED = ('Classes', 'Changed', 'Removed', 'Renamed', 'Restored', 'Accuracy')


class Job:
    """The work on a model; other work is refused until it ends.

    Attributes:
        name (str): Model.
        task (str): Key in ``TASKS`` in :mod:`.child`.
        lines (list[str]): Output of the process.
    """

    def __init__(self) -> None:
        self.name, self.task = '', 'fit'
        self.lines: list[str] = []
        self._settings: dict = {}
        self._progress = FitProgress()
        self._process: ChildProcess | None = None
        self._lock, self._reader, self._waiting = Lock(), Thread(), ''
        self._after: Callable[[], None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process may print more lines, or work follows it."""
        return self._reader.is_alive()

    @property
    def is_change(self) -> bool:
        """Whether a trained model is changed."""
        return self.task != 'fit'

    @property
    def question(self) -> str:
        """Why an ended change needs a confirmation; else empty."""
        process = self._process
        if process is None or self.is_running or not self.is_change:
            return ''
        return str(process.content or '')

    def confirm(self) -> None:
        """Repeat a change that needs a confirmation, and do it."""
        if self.question:
            settings = self._settings | dict(force=True)
            self.start(self.name, settings, self.task)

    def dismiss(self) -> None:
        """Forget an ended change that needs a confirmation."""
        if self.question:
            self._process = None

    @property
    def has_failed(self) -> bool:
        """Whether the process has ended with an error."""
        return bool(self._process and self._process.failure)

    def start(
        self,
        name: str,
        settings: dict,
        task: str = 'fit',
        progress: FitProgress | None = None,
        after: Callable[[], None] | None = None,
    ) -> None:
        """Start a task; raise ``Error`` while another one runs.

        Args:
            name (str): Model.
            settings (dict): Arguments for the task.
            task (str): Key in ``TASKS`` in :mod:`.child`. Defaults to 'fit'.
            progress (FitProgress, optional): Expected times. Defaults to
                None: as for few photos.
            after (Callable, optional): Called if the user stops it. Defaults
                to None.
        """
        with self._lock:
            if self.is_running:
                raise Error(
                    f'{self.name} is still training. Please wait until it '
                    'ends, or cancel it.'
                )
            self.name, self.lines, self.task = name, [], task
            self._progress = progress or FitProgress()
            self._settings, self._waiting, self._after = settings, '', after
            self._process = ChildProcess(task, settings)
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
            work = 'The change' if self.is_change else 'Training'
            return f'<div>{work} failed: {escape(failure)}</div>'
        if self._process.was_stopped:
            return UNCHANGED if self.is_change else STOPPED
        if self.question:
            return ''
        return self._describe_change() if self.is_change else 'Done.'

    def _describe_change(self) -> str:
        """List what a change has done, in HTML."""
        lines = [x for x in self.lines if x.startswith((*CHANGED, 'Warning'))]
        return ''.join(f'<div>{escape(line)}</div>' for line in lines)
