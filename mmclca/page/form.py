# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Form on a page without a model: train one on uploaded photos.

Photos and models are kept below a folder. The state is on the server, so that
each reload finds it again.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from html import escape
from pathlib import Path
from zipfile import ZipFile

import gradio as gr

from mmclca.checkpoints.model_folder import FILES, WEB
from mmclca.datasets.photos import check_photos, read_photos
from mmclca.datasets.photos.spellings import normalize_name
from mmclca.errors import Error
from mmclca.fitting.record import FitFolder
from mmclca.fitting.report import write_report
from mmclca.utils.folders import is_below, remove_folder

from .identify import Identification
from .job import Job, export
from .limits import MAX_FILES, MAX_MEGABYTES, MEGABYTES
from .names import MAX_LETTERS, name_of, safe_name
from .opened import open_version
from .texts import describe_result, without_advice
from .uploads import store, uploaded

CUSTOM = dict(allow_custom_value=True)
SCRIPT = Path(__file__).with_suffix('.js')
TEXT = (
    'Make one folder per class, such as `rose` and `tulip`, and put these '
    'folders into one folder or ZIP archive. '
    f'Limits: {MAX_FILES:,} photos, {MEGABYTES} MB per photo, '
    f'{MAX_MEGABYTES:,} MB in total. Photos stay on the computer that runs '
    'this page. Photos you train on are kept in '
)
FIRST = (
    'A first model is ready, which fine-tuning may improve. You can use it '
    'now, and resume the training later.'
)
COMPLETE = 'The model is ready. Only its latency is still being measured.'
# hide advice for the command line in a report
NO_TERMINAL = '<style>.terminal { display: none }</style>'
FAILED = (
    'The earlier model is kept. To train another one, type another name and '
    'choose the photos again.'
)
APP = (
    'The **phone app** identifies photos in the browser of a phone, also '
    'offline. Unpack `{}` and upload its folder to a web host with https; '
    'then open its address on the phone. The app does not run as a file.'
)


class FitForm:
    """Event handlers for the form.

    Args:
        identification (Identification): Tab that uses a finished model.
        out (Path): Folder for photos and models.
        options (Sequence[str]): Options of the command ``fit``.
    """

    def __init__(
        self, identification: Identification, out: Path, options: Sequence[str]
    ):
        self.identification, self.out = identification, out
        self.options, self.job = options, Job()
        self.text = f'{TEXT}`{out}`.'
        self._checked: dict[Path, str] = {}

    def _names(self) -> list[str]:
        """List the models of the page."""
        return sorted(path.parent.name for path in self.out.glob('*/photos'))

    def _folder(self, name: str) -> Path:
        """Return the folder of a model, which may not exist."""
        if name in self._names():
            return self.out / name
        safe = safe_name(name)
        if safe != normalize_name(name) or not is_below(
            self.out / safe, self.out
        ):
            raise Error(
                f'The name {name!r:.80} is not allowed. Please use 1 to '
                f'{MAX_LETTERS} letters, digits or spaces, without '
                '/ \\ < > : " | ? * and without a dot or hyphen at the start.'
            )
        return self.out / safe

    def add(self, upload: list[dict], names: str, name: str | None) -> list:
        """Store an uploaded folder or ZIP archive; return new values.

        ``names`` are the paths in the browser, as JSON.
        """
        files, shown = [], name
        with self._warnings():
            given = self.identification.uploads, MAX_MEGABYTES
            files += [uploaded(one['path'], *given) for one in upload]
            names = json.loads(names or '[]')
            if not name or (self._folder(name) / 'photos').is_dir():
                name = name_of(names, files)  # no model is shown, or another
            folder = self._folder(name)
            self._checked[folder] = store(files, names, folder, _summarize)
            shown = folder.name
        for file in files:
            file.unlink(missing_ok=True)
        return self.show(shown)

    def fit(self, name: str) -> list:
        """Start or resume a training, or warn; return new values."""
        with self._warnings():
            folder = self._folder(name)
            name, files = folder.name, FitFolder(folder / 'model')
            words = folder / 'photos', '--out', files.path, f'--name={name}'
            after = partial(_finish, files)
            self.job.start(name, *words, *self.options, after=after)
        return self.show(name)

    def stop(self, name: str) -> list:
        """Stop training a model, which can be used then; return new values."""
        if name == self.job.name:
            self.job.stop()
        return self.show(name)

    def load(self) -> list:
        """Return the values for a new tab: the last training."""
        return self.show(self.job.name)

    def poll(self, name: str) -> list:
        """Return new values during a training, and all values otherwise."""
        if name != self.job.name or not self.job.is_running:
            return self.show(name)
        *others, start, cancel, use, state, log = self.show(name)
        return [*[gr.skip() for _ in others], start, cancel, use, state, log]

    def show(self, name: str | None) -> list:
        """Return form values for a model, which may not exist."""
        job = self.job if name == self.job.name else Job()
        running, summary, result = job.is_running, '', ('', gr.skip(), '')
        is_ready = is_done = False
        with self._warnings():
            folder = self._folder(name) if name else None
            if folder and (folder / 'photos').is_dir():
                summary = self._summary(folder)
            is_ready = bool(summary) and _has_model(folder)
            is_done = is_ready and _is_finished(folder)
            if is_ready and not running:
                result = self._open(folder)
        text, key, report = result
        start = gr.Button(
            'Resume training' if is_ready else 'Train',
            visible=bool(summary) and not (running or is_done),
            variant='secondary' if is_ready else 'primary',
        )
        return [
            None,  # the drop zone is ready for the next folder
            gr.Dropdown(self._names(), value=name or None, **CUSTOM),
            gr.Accordion(open=not (running or is_ready)),
            _filled(summary),
            gr.Timer(active=running),
            text,
            gr.Row(visible=bool(text)),
            gr.Column(visible=False),
            key,
            report,
            start,
            gr.Button(visible=running and not is_ready),
            gr.Button(visible=running and is_ready),
            _describe_state(job, is_ready, is_done),
            _filled('\n'.join(job.lines)),
        ]

    def _summary(self, folder: Path) -> str:
        if folder not in self._checked:
            self._checked[folder] = _summarize(folder / 'photos')
        return self._checked[folder]

    def _open(self, folder: Path) -> tuple[str, tuple[Path, int], str]:
        """Open a model; return result, key and report."""
        files = FitFolder(folder / 'model')
        key = folder, files.model.stat().st_mtime_ns
        open_version(*key)
        return describe_result(files.read()), key, _framed(files.report)

    def pack(self, name: str) -> Iterator[tuple]:
        """Copy model and report to the uploads, and then the phone app."""
        with self._warnings():
            folder = self._folder(name)
            files, name = FitFolder(folder / 'model'), folder.name
            packed = self.identification.uploads / 'packed' / name
            remove_folder(packed)
            packed.mkdir(parents=True)
            _complete_report(files)
            report = shutil.copy(files.report, packed / f'{name} report.html')
            model = _zip_model(files.path, packed / f'{name} model.zip')
            paths, note = [str(report), model], 'Preparing the phone app ...'
            yield gr.Column(visible=True), paths, note
            lines = export(files.path, folder / 'photos', name)
            app, web = f'{name} phone app', files.path / WEB
            paths += [shutil.make_archive(f'{packed}/{app}', 'zip', web)]
            note = '\n\n'.join([APP.format(f'{app}.zip'), lines])
            yield gr.Column(visible=True), paths, note

    @contextmanager
    def _warnings(self) -> Iterator[None]:
        """Show an error as a warning on the page."""
        try:
            yield
        except (LookupError, OSError, TypeError, ValueError) as error:
            text = str(error)
            if isinstance(error, OSError) and error.strerror:
                name = Path(error.filename or self.out).name
                text = f'{name}: {error.strerror}'
            gr.Warning(escape(without_advice(text)), duration=30)


def _zip_model(folder: Path, out: Path) -> str:
    """Write the model files, without logs, features and exports."""
    with ZipFile(out, 'w') as archive:
        for file in filter(Path.is_file, map(folder.joinpath, FILES)):
            archive.write(file, file.name)
    return str(out)


def _summarize(photos: Path) -> str:
    """Return the number of photos per class, and the problems."""
    checked = check_photos(read_photos(photos))
    counts = checked.photos.counts()
    lines = [f'{sum(counts.values())} photos, {len(counts)} classes']
    lines += [f'{name}: {number}' for name, number in counts.items()]
    problems = [problem.describe() for problem in checked.list_problems()]
    return '\n'.join(problems + lines)


def _has_model(folder: Path) -> bool:
    """Return whether a model can be used, even before fine-tuning."""
    files = FitFolder(folder / 'model')
    return files.model.is_file() and files.file.is_file()


def _is_finished(folder: Path) -> bool:
    """Return whether a training ended by itself, and noted its time."""
    return FitFolder(folder / 'model').read().seconds > 0


def _complete_report(files: FitFolder) -> None:
    """Write the report of a stopped training, if it has a model."""
    if files.model.is_file() and not _has_text(files.report):
        photos = files.path.parent / 'photos'
        used = {photo.path for photo in files.read_used_photos()}
        write_report(files.path, {x for x in used if is_below(x, photos)})


def _finish(files: FitFolder) -> None:
    """Write a missing report; without it, the model can be used, too."""
    with suppress(OSError, ValueError):
        _complete_report(files)


def _has_text(file: Path) -> bool:
    return file.is_file() and file.stat().st_size > 0


def _framed(file: Path) -> str:
    """Show a web page without its scripts, as one line of Markdown."""
    if not _has_text(file):
        return ''
    text = file.read_text('utf-8')
    # links in a frame are relative to the page around it
    text = text.replace('href="#', 'href="about:srcdoc#')
    content = escape(text + NO_TERMINAL).replace('\n', '&#10;')
    look = 'style="width: 100%; height: 80vh" title="Report"'
    return f'<iframe sandbox {look} srcdoc="{content}"></iframe>'


def _describe_state(job: Job, is_ready: bool, is_done: bool) -> str:
    """Describe the state of a training, and what the user can do."""
    state = job.describe()
    if is_done and not (job.is_running or job.has_failed):
        return 'Done.'
    if is_ready and job.is_running:
        return f'{state}<p>{COMPLETE if is_done else FIRST}</p>'
    if is_ready and job.has_failed:
        return f'{state}<p>{FAILED}</p>'
    return state


def _filled(text: str) -> gr.Textbox:
    """Show a text box unless its text is empty."""
    return gr.Textbox(text, visible=bool(text))


def build_form(form: FitForm, opened: gr.State) -> tuple[list, gr.Button]:
    """Create the components in the current tab, and bind their events.

    ``opened`` is the key for the chosen model. Return the outputs for
    :meth:`FitForm.show`, and the button to try the model.
    """
    gr.Markdown('# Train a model on your photos')
    with gr.Accordion('Choose photos', elem_id='photos') as photos:
        gr.Markdown(form.text)
        directory = dict(file_count='directory', height=160)
        folder = gr.File(show_label=False, elem_id='folder', **directory)
        zips = dict(file_count='multiple', file_types=['.zip'], elem_id='zip')
        archive = gr.UploadButton('Or choose a ZIP archive', **zips)
        summary = _hidden_text('Photos', 8, 'found')
    label = 'Name of the model (default: folder name), or an earlier model'
    name = gr.Dropdown(label=label, elem_id='name', **CUSTOM)
    # gr.HTML needs eval, which the policy of the server forbids
    state = gr.Markdown(sanitize_html=False, elem_id='state')
    result, after, attempt, packs = _build_result()
    buttons = _build_training()
    with gr.Column(visible=False) as packed:
        files = gr.File(label='Downloads', elem_id='packed')
        note = gr.Markdown(elem_id='app')
    report = gr.Markdown(sanitize_html=False, elem_id='report')
    with gr.Accordion('Details', open=False):
        log = _hidden_text('Output of the training', 15, 'log')
    timer = gr.Timer(1, active=False)
    # Gradio drops the folders of files; the script writes them here
    paths = gr.Textbox(visible='hidden', elem_id='paths')
    values = [folder, name, photos, summary, timer, result, after, packed]
    values += [opened, report, *buttons, state, log]
    start, *stops = buttons
    _bind(folder.upload, form.add, [folder, paths, name], values)
    _bind(archive.upload, form.add, [archive, paths, name], values)
    _bind(name.input, form.show, [name], values)
    _bind(start.click, form.fit, [name], values)
    for stop in stops:
        _bind(stop.click, form.stop, [name], values)
    _bind(packs.click, form.pack, [name], [packed, files, note])
    _bind(timer.tick, form.poll, [name], values, show_progress='hidden')
    return values, attempt


def _build_training() -> tuple:
    """Create the buttons to train, cancel and use a model."""
    start = gr.Button('Train', elem_id='fit', visible=False)
    with gr.Row():
        cancel = gr.Button('Cancel', elem_id='cancel', visible=False)
        use = gr.Button('Use this model now', elem_id='use', visible=False)
    return start, cancel, use


def _build_result() -> tuple:
    """Create the result, with the buttons that follow it."""
    result = gr.Markdown(elem_id='result')
    with gr.Row(visible=False) as after:
        attempt = gr.Button('Try photos', variant='primary', elem_id='try')
        packs = gr.Button('Prepare downloads', elem_id='pack')
    return result, after, attempt, packs


def _hidden_text(label: str, lines: int, name: str) -> gr.Textbox:
    given = dict(label=label, max_lines=lines, elem_id=name)
    return gr.Textbox(visible=False, **given)


def _bind(event, handler, inputs: list, outputs: list, **options) -> None:
    # no preprocessing: Gradio would copy the files
    fixed = dict(preprocess=False, api_visibility='private')
    event(handler, inputs, outputs, **fixed, **options)
