# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Handlers of the form to train a model on uploaded photos.

Photos and models are kept below a folder. The state is on the server, so that
each reload finds it again. :mod:`.form_layout` shows it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mmclca.datasets.photos import CAPTURE_KINDS, read_photos
from mmclca.errors import Error
from mmclca.fitting.fine_tuning import explain_too_few
from mmclca.fitting.record import FitRecord
from mmclca.languages import current_language, text

from .downloads import Downloads, Package
from .handlers import shown_problems
from .identify import IdentifyTab
from .job import Job
from .limits import MAX_MEGABYTES
from .loaded_model import ModelVersion, load_version
from .models import ModelStore
from .names import name_upload
from .phone import PhoneServer
from .progress import FitProgress
from .result import describe_result
from .uploads import read_paths, resolve_upload


@dataclass(frozen=True)
class FormView:
    """Values of the form for a model.

    Args:
        name (str | None): Name of the model.
        names (list[str]): Names of all models.
        classes (list[str]): Classes of a trained model.
        can_undo (bool): Whether there is a previous model.
        is_change (bool): Whether the work is a change of the model.
        question (str): Why a change needs a confirmation; else empty.
        summary (str): Photos per class, and problems; empty without photos.
        is_running (bool): Whether the model is in training.
        is_ready (bool): Whether the model can be used.
        is_finished (bool): Whether the training ended by itself.
        result (str): Accuracy in Markdown; empty during a training.
        version (ModelVersion | None): The model for other tabs; None
            keeps the present one.
        report (str): Report in HTML.
        state (str): State of the training in HTML.
        log (str): Output of the training.
    """

    name: str | None
    names: list[str]
    classes: list[str]
    can_undo: bool
    is_change: bool
    question: str
    summary: str
    is_running: bool
    is_ready: bool
    is_finished: bool
    result: str
    version: ModelVersion | None
    report: str
    state: str
    log: str


class FitForm:
    """Event handlers for the form.

    Args:
        identify_tab (IdentifyTab): Tab to use a finished model.
        out (Path): Folder for photos and models.
        settings (dict): Arguments of :func:`mmclca.fit` for all models.
    """

    def __init__(self, identify_tab: IdentifyTab, out: Path, settings: dict):
        self.identify_tab, self.store = identify_tab, ModelStore(out)
        self.settings, self.job = settings, Job()
        self.downloads = Downloads(identify_tab.uploads / 'packed')
        self.phone = PhoneServer(identify_tab.uploads / 'phone')

    def add(
        self, upload: list | None, paths: str, name: str | None
    ) -> FormView:
        """Store an uploaded folder or ZIP archive.

        ``paths`` are the paths in the browser, as JSON.
        """
        files: list[Path] = []
        with shown_problems():
            folder = self.identify_tab.uploads
            for entry in upload or [None]:
                files.append(resolve_upload(entry, folder, MAX_MEGABYTES))
            names = read_paths(paths)
            if not name or self.store.find(name).has_photos:
                # no model is shown, or another one
                name = name_upload(names, files)
            model = self.store.find(name)
            self.store.add(model, files, names)
            name = model.name
        for file in files:
            file.unlink(missing_ok=True)
        return self.show(name)

    def fit(self, name: str, groups: str | None = None) -> FormView:
        """Start or resume a training.

        ``groups`` is the property of photos that are kept together; None for
        each photo alone.
        """
        with shown_problems():
            model = self.store.find(name)
            name = model.name
            if groups not in (None, '', *CAPTURE_KINDS):  # a forged request
                raise Error(text('page.choose_groups'))
            settings = dict(
                photos=str(model.photos),
                out=str(model.files.path),
                name=name,
                groups=groups or None,
                language=current_language(),
                **self.settings,
            )
            self.job.start(
                name,
                settings,
                progress=estimate_training(model.photos),
                after=model.end_training,
            )
        return self.show(name)

    def stop(self, name: str) -> FormView:
        """Stop training a model, which can be used then."""
        if name == self.job.name:
            self.job.stop()
        return self.show(name)

    def load(self) -> FormView:
        """Show the last training in a new tab."""
        return self.show(self.job.name)

    def show(self, name: str | None) -> FormView:
        """Show a model, which may not exist."""
        job = self.job if name == self.job.name else Job()
        is_running, summary, result, report = job.is_running, '', '', ''
        is_ready = is_finished = can_undo = False
        classes: list[str] = []
        version = record = None
        with shown_problems():
            model = self.store.find(name) if name else None
            if model and model.has_photos:
                summary = self.store.summarize(model)
                is_ready = model.is_ready
            if model and is_ready:
                record = model.read_record()
                is_finished = record.seconds > 0
            if model and record and not is_running:
                load_version(model.version)
                result = describe_result(record)
                classes, can_undo = record.photos.classes, model.can_undo
                version, report = model.version, model.frame_report()
        return FormView(
            name=name,
            names=self.store.names(),
            classes=classes,
            can_undo=can_undo,
            is_change=job.is_change,
            question=job.question,
            summary=summary,
            is_running=is_running,
            is_ready=is_ready,
            is_finished=is_finished,
            result=result,
            version=version,
            report=report,
            state=describe_state(job, record, is_finished),
            log='\n'.join(job.lines),
        )

    def pack(self, name: str) -> Iterator[Package]:
        """Copy model and report to the uploads, and then the phone app."""
        with shown_problems():
            model = self.store.find(name)
            model.require_ready()
            yield from self.downloads.pack(model)

    def open_on_phone(self, name: str) -> str:
        """Serve the app of a model; return its QR code in HTML."""
        with shown_problems():
            model = self.store.find(name)
            model.require_ready()
            return self.phone.open(model)
        return ''


def estimate_training(photos: Path) -> FitProgress:
    """Return the progress before a training, with its expected parts."""
    images = read_photos(photos)
    return FitProgress(len(images), not explain_too_few(images))


def describe_state(
    job: Job, record: FitRecord | None, is_finished: bool
) -> str:
    """Describe the state of the work on a model, and what the user can do.

    ``record`` is that of a model that can be used.
    """
    state, is_ready = job.describe(), record is not None
    if job.is_change:
        done = job.change
        return done.describe(record) if done and record else state
    if is_finished and not (job.is_running or job.has_failed):
        return text('page.state.done')
    if is_ready and job.is_running:
        key = 'page.state.complete' if is_finished else 'page.state.first'
        return f'{state}<p>{text(key)}</p>'
    if is_ready and job.has_failed:
        return f'{state}<p>{text("page.state.kept")}</p>'
    return state
