# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Form on a page without a model: fit one to uploaded photos.

Photos and models are kept below a folder. The state is on the server, so that
each reload finds it again.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from zipfile import ZipFile

import gradio as gr

from mmclca.checkpoints.fitted import FILES, WEB
from mmclca.datasets.photographs import check_photographs, read_photographs
from mmclca.datasets.photographs.spellings import clean
from mmclca.fitting import screen
from mmclca.fitting.record import ModelFolder
from mmclca.utils.folders import is_below, remove_folder

from .identify import Identification
from .job import Job, export
from .limits import MAX_FILES, MAX_MEGABYTES, MEGABYTES
from .names import MAX_LETTERS, name_of, safe_name
from .opened import open_version
from .uploads import store, uploaded

CUSTOM = dict(allow_custom_value=True)
SCRIPT = Path(__file__).with_suffix('.js')
TEXT = (
    '# Fit a model to your photos\nMake one folder per class, such as `rose` '
    'and `tulip`, and put these folders into one folder or ZIP. Limits: '
    f'{MAX_FILES:,} photos, {MEGABYTES} MB per photo, {MAX_MEGABYTES:,} MB in '
    'total. Photos and models stay on the computer that runs this page, in '
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
        if safe != clean(name) or not is_below(self.out / safe, self.out):
            raise ValueError(
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
        """Start a fit, or warn; return new values."""
        with self._warnings():
            folder = self._folder(name)
            name = folder.name
            words = folder / 'photos', '--out', folder / 'model'
            self.job.start(name, *words, *self.options)
        return self.show(name)

    def cancel(self, name: str) -> list:
        """Stop fitting a model; return new values."""
        if name == self.job.name:
            self.job.cancel()
        return self.show(name)

    def load(self) -> list:
        """Return the values for a new tab: the last fit."""
        return self.show(self.job.name)

    def poll(self, name: str) -> list:
        """Return new values during a fit, and all values otherwise."""
        if name != self.job.name or not self.job.is_running:
            return self.show(name)
        log = _filled('\n'.join(self.job.lines))
        return [gr.skip()] * 5 + [self.job.describe(), log] + [gr.skip()] * 5

    def show(self, name: str | None) -> list:
        """Return form values for a model, which may not exist."""
        job = self.job if name == self.job.name else Job()
        running, found, result = job.is_running, '', ('', '', gr.skip())
        with self._warnings():
            folder = self._folder(name) if name else None
            if folder and (folder / 'photos').is_dir():
                found = self._summary(folder)
            if folder and _is_complete(folder) and not running:
                result = self._open(folder)
        (text, report, opened), lines = result, '\n'.join(job.lines)
        return [
            None,  # the drop zone is ready for the next folder
            gr.Dropdown(self._names(), value=name or None, **CUSTOM),
            _filled(found),
            gr.Button(visible=bool(found) and not running),
            gr.Button(visible=running),
            job.describe(),
            _filled(lines if job.has_failed else text or lines),
            gr.Timer(active=running),
            gr.Row(visible=bool(text)),
            gr.File(visible=False),
            opened,
            report,
        ]

    def _summary(self, folder: Path) -> str:
        if folder not in self._checked:
            self._checked[folder] = _summarize(folder / 'photos')
        return self._checked[folder]

    def _open(self, folder: Path) -> tuple[str, str, tuple[Path, int]]:
        """Open a model; return result, report and key."""
        files = ModelFolder(folder / 'model')
        opened = folder, files.model.stat().st_mtime_ns
        open_version(*opened)
        return _result(files), _framed(files.report), opened

    def pack(self, name: str) -> Iterator[tuple]:
        """Copy model and report to the uploads, and then the web app."""
        with self._warnings():
            folder = self._folder(name)
            files = ModelFolder(folder / 'model')
            packed = self.identification.uploads / 'packed' / name
            remove_folder(packed)
            packed.mkdir(parents=True)
            paths = [str(shutil.copy(files.report, packed))]
            paths += [_zip_model(files.path, f'{packed}/model.zip')]
            yield gr.File(paths, visible=True), gr.skip()
            lines = export(files.path, folder / 'photos', name)
            web = files.path / WEB
            paths += [shutil.make_archive(f'{packed}/web', 'zip', web)]
            text = f'{_result(files)}\nWeb app    {name}\n{lines}'
            yield gr.File(paths, visible=True), text

    @contextmanager
    def _warnings(self) -> Iterator[None]:
        """Show an error as a warning on the page."""
        try:
            yield
        except (LookupError, OSError, TypeError, ValueError) as error:
            text = str(error)
            if isinstance(error, OSError) and error.strerror:
                text = f'{error.filename or self.out}: {error.strerror}'
            gr.Warning(escape(text), duration=30)


def _zip_model(folder: Path, out: str) -> str:
    """Write the model files, without logs, features and exports."""
    with ZipFile(out, 'w') as archive:
        for file in filter(Path.is_file, map(folder.joinpath, FILES)):
            archive.write(file, file.name)
    return out


def _result(files: ModelFolder) -> str:
    return '\n'.join(screen.result_lines(files.read()))


def _summarize(photos: Path) -> str:
    """Return the number of photos per class, and the problems."""
    checked = check_photographs(read_photographs(photos))
    counts = checked.photographs.counts()
    lines = [f'{sum(counts.values())} photos, {len(counts)} classes']
    lines += [f'{name}: {number}' for name, number in counts.items()]
    return '\n'.join([*checked.lines(), *lines])


def _is_complete(folder: Path) -> bool:
    """Return whether a model has a report, which is empty during a fit."""
    report = ModelFolder(folder / 'model').report
    return report.is_file() and report.stat().st_size > 0


def _framed(file: Path) -> str:
    """Show a web page without its scripts, as one line of Markdown."""
    text = file.read_text('utf-8')
    # links in a frame are relative to the page around it
    text = text.replace('href="#', 'href="about:srcdoc#')
    content = escape(text).replace('\n', '&#10;')
    look = 'style="width: 100%; height: 80vh" title="Report"'
    return f'<iframe sandbox {look} srcdoc="{content}"></iframe>'


def _filled(text: str) -> gr.Textbox:
    """Show a text box unless its text is empty."""
    return gr.Textbox(text, visible=bool(text))


def build_form(form: FitForm, opened: gr.State) -> tuple[list, gr.Button]:
    """Create the components in the current tab, and bind their events.

    ``opened`` is the key for the chosen model. Return the outputs for
    :meth:`FitForm.show`, and the button to try the model.
    """
    label = 'Drop a folder with one folder per class, or click to choose it'
    folder = gr.File(
        file_count='directory', label=label, height=160, elem_id='folder'
    )
    zips = dict(file_count='multiple', file_types=['.zip'], elem_id='zip')
    archive = gr.UploadButton('Or choose a ZIP', **zips)
    label = 'Model name (default: folder name), or an earlier model'
    name = gr.Dropdown(label=label, elem_id='name', **CUSTOM)
    hidden = dict(visible=False)
    found = gr.Textbox(label='Photos', max_lines=8, elem_id='found', **hidden)
    start = gr.Button('Fit', variant='primary', elem_id='fit', **hidden)
    cancel = gr.Button('Cancel', variant='stop', elem_id='cancel', **hidden)
    # gr.HTML needs eval, which the policy of the server forbids
    state = gr.Markdown(sanitize_html=False, elem_id='state')
    log = gr.Textbox(label='Result', max_lines=15, elem_id='log', **hidden)
    with gr.Row(**hidden) as after:
        attempt = gr.Button('Try photos', variant='primary', elem_id='try')
        packs = gr.Button('Prepare downloads', elem_id='pack')
    packed = gr.File(label='Downloads', elem_id='packed', **hidden)
    report = gr.Markdown(sanitize_html=False, elem_id='report')
    timer = gr.Timer(1, active=False)
    # Gradio drops the folders of files; the script writes them here
    paths = gr.Textbox(visible='hidden', elem_id='paths')
    values = [folder, name, found, start, cancel, state, log]
    values += [timer, after, packed, opened, report]
    _bind(folder.upload, form.add, [folder, paths, name], values)
    _bind(archive.upload, form.add, [archive, paths, name], values)
    _bind(name.input, form.show, [name], values)
    _bind(start.click, form.fit, [name], values)
    _bind(cancel.click, form.cancel, [name], values)
    _bind(packs.click, form.pack, [name], [packed, log])
    _bind(timer.tick, form.poll, [name], values, show_progress='hidden')
    return values, attempt


def _bind(event, handler, inputs: list, outputs: list, **more) -> None:
    # no preprocessing: Gradio would copy the files
    fixed = dict(preprocess=False, api_visibility='private')
    event(handler, inputs, outputs, **fixed, **more)
