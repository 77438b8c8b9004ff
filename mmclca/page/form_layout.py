# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Components of the form, and their values for a model."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.components import Component

from mmclca.languages import text

from .downloads import Package
from .folder_input import FolderInput, create_folder_input
from .form import FitForm, FormView
from .growth import Growth
from .growth_layout import GrowthComponents, bind_growth, create_growth
from .handlers import bind
from .language import label

SCRIPT = Path(__file__).with_name('form.js')
GROUPS = [
    (label('label.train.alone'), ''),
    (label('label.train.day'), 'day'),
    (label('label.train.folder'), 'folder'),
]
# new values by component; other components keep theirs
Update = dict[Component, Any]


@dataclass(frozen=True)
class FormComponents:
    """Components of the form, in the order of the page.

    ``version`` is the key of the chosen model, for other tabs.
    """

    photos: gr.Accordion
    upload: FolderInput
    summary: gr.Textbox
    name: gr.Dropdown
    state: gr.Markdown
    result: gr.Markdown
    after: gr.Row
    attempt: gr.Button
    pack: gr.Button
    phone: gr.Button
    growth: GrowthComponents
    groups: gr.Dropdown
    start: gr.Button
    cancel: gr.Button
    use: gr.Button
    packed: gr.Column
    files: gr.File
    note: gr.Markdown
    code: gr.Markdown
    report: gr.Markdown
    log: gr.Textbox
    timer: gr.Timer
    version: gr.State

    @property
    def outputs(self) -> list:
        """Components with values for a model, or for its training."""
        return [
            self.photos,
            self.upload.folder,
            self.summary,
            self.name,
            self.state,
            self.result,
            self.after,
            self.groups,
            self.start,
            self.cancel,
            self.use,
            self.packed,
            self.code,
            self.report,
            self.log,
            self.timer,
            self.version,
            *self.growth.outputs,
        ]

    def show(self, view: FormView) -> Update:
        """Return the values of all components for a model."""
        update = self.show_progress(view)
        update |= {
            self.upload.folder: None,  # ready for the next folder
            self.name: gr.Dropdown(
                view.names, value=view.name or None, allow_custom_value=True
            ),
            self.photos: gr.Accordion(
                open=not (view.is_running or view.is_ready)
            ),
            self.summary: _show_filled(view.summary),
            self.timer: gr.Timer(active=view.is_running),
            self.result: view.result,
            self.after: gr.Row(visible=bool(view.result)),
            self.packed: gr.Column(visible=False),
            self.code: '',
            self.report: view.report,
            **self.growth.show(view),
        }
        if view.version:
            update[self.version] = view.version
        return update

    def show_loaded(self, view: FormView) -> Update:
        """Return the values for a new tab: the last training, if any.

        Photos may be dropped before the page has loaded.
        """
        if view.name:
            return self.show(view)
        return {self.name: gr.Dropdown(view.names, allow_custom_value=True)}

    def show_progress(self, view: FormView) -> Update:
        """Return the values for a running training."""
        is_idle = not (view.is_running or view.is_finished)
        is_training_ready = (
            view.is_running and view.is_ready and not view.is_change
        )
        return {
            self.start: gr.Button(
                _label_start(view),
                visible=bool(view.summary) and is_idle,
                variant='secondary' if view.is_ready else 'primary',
            ),
            self.groups: gr.Dropdown(
                visible=bool(view.summary) and is_idle and not view.is_ready
            ),
            self.cancel: gr.Button(
                visible=view.is_running and not is_training_ready
            ),
            self.use: gr.Button(visible=is_training_ready),
            **self.growth.show_running(view.is_running, view),
            self.state: view.state,
            self.log: _show_filled(view.log),
        }

    def show_package(self, package: Package) -> Update:
        """Return the values for files to download."""
        return {
            self.packed: gr.Column(visible=True),
            self.files: gr.File(
                [str(path) for path in package.files],
                label=text('page.downloads'),
            ),
            self.note: package.note,
        }


def _label_start(view: FormView) -> str:
    if view.is_ready:
        return text('page.resume')
    return label('label.train.start')


def _show_filled(content: str) -> gr.Textbox:
    """Show a text box unless it is empty."""
    return gr.Textbox(content, visible=bool(content))


def build_form(form: FitForm, version: gr.State) -> FormComponents:
    """Create the components in the current tab, and bind their events.

    ``version`` is the key for the chosen model.
    """
    parts = _create_components(form.store.folder, version)

    def bind_form(event, handler: Callable, *inputs: Component) -> None:
        def update(*values) -> Update:
            return parts.show(handler(*values))

        # no preprocessing: Gradio would copy the files
        bind(event, update, [*inputs], parts.outputs, preprocess=False)

    def poll(name: str | None) -> Update:
        view = form.show(name)
        return (parts.show_progress if view.is_running else parts.show)(view)

    def pack(name: str) -> Iterator[Update]:
        for package in form.pack(name):
            yield parts.show_package(package)

    paths = parts.upload.paths
    for source in parts.upload.sources:
        bind_form(source.upload, form.add, source, paths, parts.name)
    bind_form(parts.name.input, form.show, parts.name)
    bind_form(parts.start.click, form.fit, parts.name, parts.groups)
    bind_growth(parts.growth, Growth(form), parts.name, bind_form)
    for stop in (parts.cancel, parts.use):
        bind_form(stop.click, form.stop, parts.name)
    packed = [parts.packed, parts.files, parts.note]
    bind(parts.pack.click, pack, [parts.name], packed, preprocess=False)
    bind(
        parts.phone.click,
        lambda name: {parts.code: form.open_on_phone(name)},
        [parts.name],
        [parts.code],
        preprocess=False,
    )
    bind(
        parts.timer.tick,
        poll,
        [parts.name],
        parts.outputs,
        preprocess=False,
        show_progress='hidden',
    )
    return parts


def _create_components(out: Path, version: gr.State) -> FormComponents:
    """Create the components; ``out`` is the folder of all models."""
    gr.Markdown(label('label.train.heading'))
    with gr.Accordion(
        label('label.choose_photos'), elem_id='photos'
    ) as photos:
        introduction = label('label.train.introduction')
        gr.Markdown(f'{introduction} `{out}`')
        upload = create_folder_input('folder', 'zip')
        summary = gr.Textbox(
            label=label('label.train.summary'),
            max_lines=8,
            visible=False,
            elem_id='found',
        )
    name = gr.Dropdown(
        label=label('label.train.name'),
        allow_custom_value=True,
        elem_id='name',
    )
    # gr.HTML needs eval, which the policy of the server forbids
    state = gr.Markdown(sanitize_html=False, elem_id='state')
    result = gr.Markdown(elem_id='result')
    with gr.Row(visible=False) as after:
        attempt = gr.Button(
            label('label.train.try'), variant='primary', elem_id='try'
        )
        pack = gr.Button(label('label.train.pack'), elem_id='pack')
        phone = gr.Button(label('label.train.phone'), elem_id='phone')
    growth = create_growth()
    groups = gr.Dropdown(
        GROUPS,
        value='',
        label=label('label.train.groups'),
        info=label('label.train.groups_info'),
        visible=False,
        elem_id='groups',
    )
    start = gr.Button(label('label.train.start'), elem_id='fit', visible=False)
    with gr.Row():
        cancel = gr.Button(
            label('label.train.cancel'), elem_id='cancel', visible=False
        )
        use = gr.Button(label('label.train.use'), elem_id='use', visible=False)
    with gr.Column(visible=False) as packed:
        files = gr.File(elem_id='packed')
        note = gr.Markdown(elem_id='app')
    code = gr.Markdown(sanitize_html=False, elem_id='code')
    report = gr.Markdown(sanitize_html=False, elem_id='report')
    with gr.Accordion(label('label.details'), open=False):
        log = gr.Textbox(
            label=label('label.train.log'),
            max_lines=15,
            visible=False,
            elem_id='log',
        )
    return FormComponents(
        photos=photos,
        upload=upload,
        summary=summary,
        name=name,
        state=state,
        result=result,
        after=after,
        attempt=attempt,
        pack=pack,
        phone=phone,
        growth=growth,
        groups=groups,
        start=start,
        cancel=cancel,
        use=use,
        packed=packed,
        files=files,
        note=note,
        code=code,
        report=report,
        log=log,
        timer=gr.Timer(1, active=False),
        version=version,
    )
