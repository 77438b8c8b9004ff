# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Components to change a trained model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component

from mmclca.fitting.wording import sentence

from .folder_input import FolderInput, create_folder_input
from .form import FormView
from .growth import Growth
from .handlers import bind
from .marked import MarkedPhoto

Bind = Callable[..., None]
TITLE = 'Change the model'
ADD = (
    'Drop photos of known or new classes: a folder or ZIP archive with one '
    'folder per class, such as one from the phone app. If all photos show '
    'one class, choose or type it first.'
)
MARKED = (
    'The report marks photos that the model does not recognize. Is the label '
    'wrong? Choose a photo, then its right class, or remove it. **Apply** '
    'changes the model. No file is moved or deleted.'
)
CLASSES = 'A class with the name of another one joins it. No photo is deleted.'
DELETE = 'The model and its photos on this page will be deleted for good.'
NO_MARKED = 'The report marks no photo.'
REMOVE = 'remove'
CORRECTED = '**{} corrected:** {}'


@dataclass(frozen=True)
class GrowthComponents:
    """Components to change a model, in their order on the page.

    ``photos`` are the :class:`.MarkedPhoto`, ``corrections`` the new
    class by path.
    """

    question: gr.Markdown
    confirm: gr.Button
    dismiss: gr.Button
    undo: gr.Button
    all: gr.Accordion
    label: gr.Dropdown
    upload: FolderInput
    mark: gr.Button
    gallery: gr.Gallery
    photo: gr.Dropdown
    right: gr.Dropdown
    move: gr.Button
    remove: gr.Button
    corrected: gr.Markdown
    apply: gr.Button
    chosen: gr.Dropdown
    new: gr.Textbox
    rename: gr.Button
    drop: gr.Button
    model_name: gr.Textbox
    rename_model: gr.Button
    delete: gr.Button
    warning: gr.Markdown
    delete_now: gr.Button
    photos: gr.State
    corrections: gr.State

    @property
    def outputs(self) -> list:
        """Components with values for a model."""
        return [*self.show_parts([]), *self.show_running(False), *self.inputs]

    @property
    def inputs(self) -> list:
        """Components for one model."""
        return [
            self.question,
            self.upload.folder,
            self.label,
            self.chosen,
            self.new,
            self.model_name,
            self.warning,
            self.delete_now,
        ]

    def show(self, view: FormView) -> dict[Component, Any]:
        """Return the values for another model, or after a change."""
        classes = view.classes
        return {
            **self.show_parts([]),
            **self.show_running(view.is_running, view),
            self.question: sentence(view.question) if view.question else '',
            self.upload.folder: None,  # ready for the next folder
            self.label: gr.Dropdown(classes, value=None),
            self.chosen: gr.Dropdown(classes, value=None),
            self.new: '',
            self.model_name: '',
            self.warning: gr.Markdown(visible=False),
            self.delete_now: gr.Button(visible=False),
        }

    def show_running(
        self, is_running: bool, view: FormView | None = None
    ) -> dict[Component, Any]:
        """Show the components if there is a model without any work."""
        is_idle = bool(view and view.is_ready) and not is_running
        is_asking = bool(view and view.question)
        return {
            self.confirm: gr.Button(visible=is_asking),
            self.dismiss: gr.Button(visible=is_asking),
            self.undo: gr.Button(
                visible=bool(is_idle and view and view.can_undo)
            ),
            self.all: gr.Accordion(visible=is_idle),
        }

    def show_parts(
        self, photos: list[MarkedPhoto], classes: Sequence[str] = ()
    ) -> dict[Component, Any]:
        """Show marked photos, without corrections."""
        pictures = [(x.picture, x.title) for x in photos if x.picture]
        is_shown = bool(photos)
        return {
            self.photos: photos,
            self.gallery: gr.Gallery(pictures, visible=bool(pictures)),
            self.photo: gr.Dropdown(
                [photo.title for photo in photos],
                value=photos[0].title if photos else None,
                visible=is_shown,
            ),
            self.right: gr.Dropdown([*classes], value=None, visible=is_shown),
            self.move: gr.Button(visible=is_shown),
            self.remove: gr.Button(visible=is_shown),
            self.apply: gr.Button(visible=False),
            self.corrected: '',
            self.corrections: {},
        }

    def show_corrections(
        self, photos: list[MarkedPhoto], corrections: dict[str, str | None]
    ) -> dict[Component, Any]:
        """List the corrections so far; show the next photo."""
        titles = {photo.path: photo.title for photo in photos}
        lines = [
            f'{titles[path].partition(":")[0]} → {label or REMOVE}'
            for path, label in corrections.items()
        ]
        following = [x.title for x in photos if x.path not in corrections]
        listed = CORRECTED.format(len(lines), ', '.join(lines))
        return {
            self.corrections: corrections,
            self.corrected: listed if lines else '',
            self.apply: gr.Button(visible=bool(lines)),
            self.photo: gr.Dropdown(
                [photo.title for photo in photos],
                value=following[0] if following else None,
            ),
        }


def create_growth() -> GrowthComponents:
    """Create the components in the current block."""
    question = gr.Markdown(elem_id='question')
    with gr.Row():
        confirm = gr.Button(
            'Change the model anyway', visible=False, elem_id='confirm'
        )
        dismiss = gr.Button('Keep the model', visible=False, elem_id='dismiss')
    with gr.Accordion(
        TITLE, open=False, visible=False, elem_id='growth'
    ) as everything:
        with gr.Accordion('Add photos', open=False):
            gr.Markdown(ADD)
            label = gr.Dropdown(
                label='Class of all photos (default: their folders)',
                allow_custom_value=True,
                elem_id='more_class',
            )
            upload = create_folder_input('more', 'more_zip')
        with gr.Accordion('Check photos', open=False):
            gr.Markdown(MARKED)
            mark = gr.Button('Show marked photos', elem_id='mark')
            gallery = gr.Gallery(
                label='Marked photos: file, class? prediction',
                visible=False,
                format='jpeg',
                buttons=[],
                elem_id='marked',
            )
            photo = gr.Dropdown(
                label='Photo', visible=False, elem_id='marked_photo'
            )
            right = gr.Dropdown(
                label='Right class', visible=False, elem_id='right_class'
            )
            with gr.Row():
                move = gr.Button('Move', visible=False, elem_id='move')
                remove = gr.Button('Remove', visible=False, elem_id='remove')
            corrected = gr.Markdown(elem_id='corrected')
            apply = gr.Button(
                'Apply', variant='primary', visible=False, elem_id='apply'
            )
        with gr.Accordion('Classes', open=False):
            gr.Markdown(CLASSES)
            chosen = gr.Dropdown(label='Class', elem_id='class')
            new = gr.Textbox(label='New name', elem_id='class_name')
            with gr.Row():
                rename = gr.Button('Rename class', elem_id='rename_class')
                drop = gr.Button('Remove class', elem_id='remove_class')
        with gr.Accordion('Rename or delete', open=False):
            model_name = gr.Textbox(
                label='New name of the model', elem_id='model_name'
            )
            with gr.Row():
                rename_model = gr.Button(
                    'Rename model', elem_id='rename_model'
                )
                delete = gr.Button('Delete model', elem_id='delete_model')
            warning = gr.Markdown(DELETE, visible=False)
            delete_now = gr.Button(
                'Delete for good',
                variant='stop',
                visible=False,
                elem_id='delete_now',
            )
    undo = gr.Button('Undo the last change', visible=False, elem_id='undo')
    return GrowthComponents(
        question=question,
        confirm=confirm,
        dismiss=dismiss,
        undo=undo,
        all=everything,
        label=label,
        upload=upload,
        mark=mark,
        gallery=gallery,
        photo=photo,
        right=right,
        move=move,
        remove=remove,
        corrected=corrected,
        apply=apply,
        chosen=chosen,
        new=new,
        rename=rename,
        drop=drop,
        model_name=model_name,
        rename_model=rename_model,
        delete=delete,
        warning=warning,
        delete_now=delete_now,
        photos=gr.State([]),
        corrections=gr.State({}),
    )


def bind_growth(
    parts: GrowthComponents, growth: Growth, name: gr.Dropdown, bind_form: Bind
) -> None:
    """Bind the events.

    Args:
        parts (GrowthComponents): The components.
        growth (Growth): Their handlers.
        name (gr.Dropdown): Name for the model.
        bind_form (Callable): Binds an event to a handler returning new
            values for the form.
    """
    paths = parts.upload.paths
    for source in parts.upload.sources:
        bind_form(
            source.upload, growth.add_photos, source, paths, parts.label, name
        )
    chosen = parts.chosen
    bind_form(parts.rename.click, growth.rename_class, chosen, parts.new, name)
    bind_form(parts.drop.click, growth.remove_class, chosen, name)
    bind_form(parts.apply.click, growth.correct, parts.corrections, name)
    bind_form(parts.undo.click, growth.undo, name)
    bind_form(parts.confirm.click, growth.confirm, name)
    bind_form(parts.dismiss.click, growth.dismiss, name)
    bind_form(
        parts.rename_model.click, growth.rename_model, parts.model_name, name
    )
    bind_form(parts.delete_now.click, growth.delete_model, name)
    _bind_marked(parts, growth, name)

    def warn() -> dict:
        return {
            parts.warning: gr.Markdown(visible=True),
            parts.delete_now: gr.Button(visible=True),
        }

    bind(parts.delete.click, warn, [], [parts.warning, parts.delete_now])


def _bind_marked(
    parts: GrowthComponents, growth: Growth, name: gr.Dropdown
) -> None:
    """Bind the events for marked photos."""

    def mark(model: str) -> dict:
        marked = growth.list_marked(model)
        if not marked.photos:
            gr.Info(NO_MARKED)
        return parts.show_parts(marked.photos, marked.classes)

    def correct(
        title: str | None,
        label: str | None,
        photos: list[MarkedPhoto],
        corrections: dict[str, str | None],
    ) -> dict:
        path = next((x.path for x in photos if x.title == title), None)
        if path is not None:
            corrections = corrections | {path: label}
        return parts.show_corrections(photos, corrections)

    def move(
        title: str | None,
        label: str | None,
        photos: list[MarkedPhoto],
        corrections: dict[str, str | None],
    ) -> dict:
        if not label:
            gr.Warning('Please choose the right class.')
            return {parts.corrections: corrections}
        return correct(title, label, photos, corrections)

    def remove(
        title: str | None,
        photos: list[MarkedPhoto],
        corrections: dict[str, str | None],
    ) -> dict:
        return correct(title, None, photos, corrections)

    marked = [*parts.show_parts([])]
    bind(parts.mark.click, mark, [name], marked)
    state = [parts.photos, parts.corrections]
    changed = [parts.corrections, parts.corrected, parts.apply, parts.photo]
    bind(parts.move.click, move, [parts.photo, parts.right, *state], changed)
    bind(parts.remove.click, remove, [parts.photo, *state], changed)
