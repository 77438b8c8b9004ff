# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train or change a model in its own process."""

from collections.abc import Callable
from html import escape
from threading import Lock, Thread

from mmclca.errors import Error
from mmclca.fitting.record import FitRecord
from mmclca.languages import text
from mmclca.utils.events import LineEvent, ProgressEvent, StepEvent

from .changed import FinishedChange
from .model_changes import ChangeResult
from .process import ChildProcess
from .progress import FitProgress


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
        result = self._read_result()
        if result is None or not result.key:
            return ''
        return text(result.key, **result.values)

    @property
    def change(self) -> FinishedChange | None:
        """The change, once it is done."""
        result = self._read_result()
        if result is None or result.key:
            return None
        return FinishedChange(
            self._settings['change'],
            self._settings['settings'],
            FitRecord.from_json(result.before),
        )

    def _read_result(self) -> ChangeResult | None:
        """Return the result of an ended change; None if it failed."""
        process = self._process
        if process is None or self.is_running or not self.is_change:
            return None
        return ChangeResult(**process.content) if process.content else None

    def confirm(self) -> None:
        """Repeat and do a change after its confirmation."""
        if self.question:
            settings = self._settings | dict(force=True)
            self.start(self.name, settings, self.task)

    def dismiss(self) -> None:
        """Forget an ended change without a confirmation."""
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
                raise Error(text('page.is_training', name=self.name))
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
            self._waiting = 'page.state.writing'
            after()

    def stop(self) -> None:
        """Ask the process to end soon; a later training resumes."""
        with self._lock:
            if self._process and self.is_running and not self._waiting:
                self._waiting = 'page.state.stopping'
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
            if self._waiting:
                return text(self._waiting)
            return self._progress.describe()
        if failure := self._process.failure:
            # the content of a tag is not read as Markdown, such as a link
            work = 'change' if self.is_change else 'training'
            state = text(f'page.state.{work}_failed', problem=failure)
            return f'<div>{escape(state)}</div>'
        if self._process.was_stopped:
            work = 'unchanged' if self.is_change else 'stopped'
            return text(f'page.state.{work}')
        return '' if self.is_change else text('page.state.done')
