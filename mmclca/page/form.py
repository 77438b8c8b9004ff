# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""First tab of a page without a model: fit one to uploaded photos.

Photos and models are kept below a folder. The state is on the server, so that
each reload finds it again.
"""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from pathlib import Path

import gradio as gr

from mmclca.datasets.photographs import check_photographs, read_photographs
from mmclca.fitting import screen
from mmclca.fitting.record import ModelFolder
from mmclca.utils.folders import is_below

from .identify import Identification
from .job import Job, export
from .limits import MAX_FILES, MAX_MEGABYTES, MEGABYTES
from .opened import open_model
from .uploads import store, uploaded

NAME = re.compile(r'\w[\w .()+-]{0,63}')
CUSTOM = dict(allow_custom_value=True)
SCRIPT = Path(__file__).with_suffix('.js')
TEXT = (
    '# Fit a model to your photos\nPut the photos of each class into one '
    'folder, such as `rose` and `tulip`, and these folders into one folder or '
    f'ZIP: up to {MAX_FILES:,} photos of {MEGABYTES} MB, {MAX_MEGABYTES:,} MB '
    'in all. Photos and models stay on the computer that runs this page, in '
)


class FitForm:
    """Event handlers of the form.

    Args:
        identification (Identification): Tab that uses a finished model.
        out (Path): Folder of photos and models.
        options (Sequence[str]): Options of the command ``fit``.
    """

    def __init__(
        self, identification: Identification, out: Path, options: Sequence[str]
    ):
        self.identification, self.out = identification, out
        self.options, self.job = options, Job()
        self.text = f'{TEXT}`{out}`.'
        self._checked: dict[Path, str] = {}
        self._opened = ''  # model on the other tabs, and its time

    def _folder(self, name: str) -> Path:
        if not NAME.fullmatch(name) or not is_below(self.out / name, self.out):
            raise ValueError(
                f'The name {name!r:.80} is not allowed. Please type 1 to 64 '
                'letters, digits, spaces, or any of _ - + . ( )'
            )
        return self.out / name

    def add(self, upload: list[dict], names: str, name: str | None) -> list:
        """Store an uploaded folder or ZIP archive; return new values.

        ``names`` are the paths in the browser, as JSON.
        """
        files = []
        with _warnings():
            given = self.identification.uploads, MAX_MEGABYTES
            files += [uploaded(one['path'], *given) for one in upload]
            names = json.loads(names or '[]')
            outer = names[0] if len(files) > 1 else files[0].stem
            if not name or (self._folder(name) / 'photos').is_dir():
                name = Path(outer).parts[0]  # no model is shown, or another
            folder = self._folder(name)
            self._checked[folder] = store(files, names, folder, _summarize)
        for file in files:
            file.unlink(missing_ok=True)
        return self.show(name)

    def fit(self, name: str) -> list:
        """Start a fit, or warn; return new values."""
        with _warnings():
            folder = self._folder(name)
            words = folder / 'photos', '--out', folder / 'model'
            self.job.start(name, *words, *self.options)
        return self.show(name)

    def cancel(self, name: str) -> list:
        """Stop the fit; return new values."""
        self.job.cancel()
        return self.show(name)

    def load(self) -> list:
        """Return the values of a new tab: those of the last fit."""
        return self.show(self.job.name)

    def poll(self, name: str) -> list:
        """Return new values during a fit, and all values at its end."""
        if not self.job.is_running:
            return self.show(name)
        log = _filled('\n'.join(self.job.lines))
        return [gr.skip()] * 5 + [self.job.describe(), log] + [gr.skip()] * 3

    def show(self, name: str | None) -> list:
        """Return the values of the form for a model, which may not exist."""
        is_own, found, report, result = name == self.job.name, '', '', ''
        running = is_own and self.job.is_running
        with _warnings():
            folder = self._folder(name) if name else self.out
            if (folder / 'photos').is_dir():
                found = self._summary(folder)
            if (folder / 'model/model.pth').is_file() and not running:
                result, report = self._open(folder)
        state = self.job.describe() if is_own else ''
        lines = self.job.lines if is_own else []
        names = sorted(x.parent.name for x in self.out.glob('*/photos'))
        return [
            None,  # the drop zone is ready for the next folder
            gr.Dropdown(names, value=name or None, **CUSTOM),
            _filled(found),
            gr.Button(visible=bool(found) and not running),
            gr.Button(visible=running),
            f'{state}\n\n{report}',
            _filled(result or '\n'.join(lines)),
            gr.Timer(active=running),
            gr.Row(visible=bool(result)),
            self._opened,
        ]

    def _summary(self, folder: Path) -> str:
        if folder not in self._checked:
            self._checked[folder] = _summarize(folder / 'photos')
        return self._checked[folder]

    def _open(self, folder: Path) -> tuple[str, str]:
        """Let visitors try a model; return its result and its report."""
        files = ModelFolder(folder / 'model')
        opened = f'{folder} {files.model.stat().st_mtime_ns}'
        if self._opened != opened:
            model = open_model(files.path)
            about = f'{folder.name}: {model.about}'
            self.identification.model = replace(model, about=about)
            self._opened = opened
        result = '\n'.join(screen.result_lines(files.read()))
        return result, ''.join(map(_framed, files.path.glob('report.html')))

    def pack(self, name: str) -> Iterator[gr.File]:
        """Copy model and report to the uploads, and then the web app."""
        with _warnings():
            place = self._folder(name) / 'model'
            packed = self.identification.uploads / 'packed' / name
            packed.mkdir(parents=True, exist_ok=True)
            files = [str(shutil.copy(place / 'report.html', packed))]
            files += [shutil.make_archive(f'{packed}/model', 'zip', place)]
            yield gr.File(files, visible=True)
            export(place, name)
            web = place / 'web'
            files += [shutil.make_archive(f'{packed}/web', 'zip', web)]
            yield gr.File(files, visible=True)


@contextmanager
def _warnings() -> Iterator[None]:
    """Show an error as a warning on the page."""
    try:
        yield
    except (LookupError, OSError, TypeError, ValueError) as error:
        text = error.strerror if isinstance(error, OSError) else None
        gr.Warning(escape(text or str(error)), duration=30)


def _summarize(photos: Path) -> str:
    """Return the number of photos per class, and the problems."""
    checked = check_photographs(read_photographs(photos))
    counts = checked.photographs.counts()
    lines = [f'{sum(counts.values())} photos, {len(counts)} classes']
    lines += [f'{name}: {number}' for name, number in counts.items()]
    return '\n'.join([*checked.lines(), *lines])


def _framed(file: Path) -> str:
    """Show a web page without its scripts, as one line of Markdown."""
    content = escape(file.read_text('utf-8')).replace('\n', '&#10;')
    look = 'style="width: 100%; height: 80vh" title="Report"'
    return f'<iframe sandbox {look} srcdoc="{content}"></iframe>'


def _filled(text: str) -> gr.Textbox:
    """Show a text box unless its text is empty."""
    return gr.Textbox(text, visible=bool(text))


def build_form(form: FitForm) -> tuple[list, gr.State, gr.Button]:
    """Create the components in the current tab, and bind their events.

    Return the components that :meth:`FitForm.show` changes, the state that
    changes with the opened model, and the button to try it.
    """
    label = 'Drop a folder with one folder per class, or click to choose it'
    folder = gr.File(file_count='directory', label=label, elem_id='folder')
    zips = dict(file_count='multiple', file_types=['.zip'], elem_id='zip')
    archive = gr.UploadButton('Or choose a ZIP', **zips)
    label = 'Name of the model (default: name of the folder), or earlier model'
    name = gr.Dropdown(label=label, elem_id='name', **CUSTOM)
    hidden = dict(visible=False)
    found = gr.Textbox(label='Photos', max_lines=12, elem_id='found', **hidden)
    start = gr.Button('Fit', variant='primary', elem_id='fit', **hidden)
    cancel = gr.Button('Cancel', variant='stop', elem_id='cancel', **hidden)
    log = gr.Textbox(label='Result', max_lines=15, elem_id='log', **hidden)
    with gr.Row(**hidden) as after:
        attempt = gr.Button('Try photos', variant='primary', elem_id='try')
        packs = gr.Button('Prepare downloads', elem_id='pack')
    packed = gr.File(label='Downloads', elem_id='packed', **hidden)
    # gr.HTML needs eval, which the policy of the server forbids
    state = gr.Markdown(sanitize_html=False, elem_id='state')
    timer, opened = gr.Timer(1, active=False), gr.State('')
    # Gradio drops the folders of files; the script writes them here
    paths = gr.Textbox(visible='hidden', elem_id='paths')
    values = [folder, name, found, start, cancel, state, log]
    values += [timer, after, opened]
    _bind(folder.upload, form.add, [folder, paths, name], values)
    _bind(archive.upload, form.add, [archive, paths, name], values)
    _bind(name.input, form.show, [name], values)
    _bind(start.click, form.fit, [name], values)
    _bind(cancel.click, form.cancel, [name], values)
    _bind(packs.click, form.pack, [name], [packed])
    _bind(timer.tick, form.poll, [name], values, show_progress='hidden')
    return values, opened, attempt


def _bind(event, handler, inputs: list, outputs: list, **more) -> None:
    # no preprocessing: Gradio would copy the files
    fixed = dict(preprocess=False, api_visibility='private')
    event(handler, inputs, outputs, **fixed, **more)
