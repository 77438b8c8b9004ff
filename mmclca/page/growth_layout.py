# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Components to change a trained model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component

from mmclca.fitting.wording import sentence
from mmclca.languages import text

from .folder_input import FolderInput, create_folder_input
from .form import FormView
from .growth import Growth
from .handlers import bind
from .language import label
from .marked import MarkedPhoto

Bind = Callable[..., None]


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
        removal = text('page.removal')
        lines = [
            f'{titles[path].partition(":")[0]} → {name or removal}'
            for path, name in corrections.items()
        ]
        following = [x.title for x in photos if x.path not in corrections]
        listed = text(
            'page.corrected', number=len(lines), names=', '.join(lines)
        )
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
            label('label.growth.confirm'), visible=False, elem_id='confirm'
        )
        dismiss = gr.Button(
            label('label.growth.dismiss'), visible=False, elem_id='dismiss'
        )
    with gr.Accordion(
        label('label.growth.heading'),
        open=False,
        visible=False,
        elem_id='growth',
    ) as everything:
        with gr.Accordion(label('label.growth.add'), open=False):
            gr.Markdown(label('label.growth.add_explained'))
            name = gr.Dropdown(
                label=label('label.growth.label'),
                allow_custom_value=True,
                elem_id='more_class',
            )
            upload = create_folder_input('more', 'more_zip')
        with gr.Accordion(label('label.growth.check'), open=False):
            gr.Markdown(label('label.growth.marked_explained'))
            mark = gr.Button(label('label.growth.mark'), elem_id='mark')
            gallery = gr.Gallery(
                label=label('label.growth.gallery'),
                visible=False,
                format='jpeg',
                buttons=[],
                elem_id='marked',
            )
            photo = gr.Dropdown(
                label=label('label.growth.photo'),
                visible=False,
                elem_id='marked_photo',
            )
            right = gr.Dropdown(
                label=label('label.growth.right'),
                visible=False,
                elem_id='right_class',
            )
            with gr.Row():
                move = gr.Button(
                    label('label.growth.move'), visible=False, elem_id='move'
                )
                remove = gr.Button(
                    label('label.growth.remove'),
                    visible=False,
                    elem_id='remove',
                )
            corrected = gr.Markdown(elem_id='corrected')
            apply = gr.Button(
                label('label.growth.apply'),
                variant='primary',
                visible=False,
                elem_id='apply',
            )
        with gr.Accordion(label('label.growth.classes'), open=False):
            gr.Markdown(label('label.growth.classes_explained'))
            chosen = gr.Dropdown(
                label=label('label.growth.class'), elem_id='class'
            )
            new = gr.Textbox(
                label=label('label.growth.new'), elem_id='class_name'
            )
            with gr.Row():
                rename = gr.Button(
                    label('label.growth.rename'), elem_id='rename_class'
                )
                drop = gr.Button(
                    label('label.growth.drop'), elem_id='remove_class'
                )
        with gr.Accordion(label('label.growth.model'), open=False):
            model_name = gr.Textbox(
                label=label('label.growth.model_name'), elem_id='model_name'
            )
            with gr.Row():
                rename_model = gr.Button(
                    label('label.growth.rename_model'), elem_id='rename_model'
                )
                delete = gr.Button(
                    label('label.growth.delete'), elem_id='delete_model'
                )
            warning = gr.Markdown(
                label('label.growth.delete_explained'), visible=False
            )
            delete_now = gr.Button(
                label('label.growth.delete_now'),
                variant='stop',
                visible=False,
                elem_id='delete_now',
            )
    undo = gr.Button(label('label.growth.undo'), visible=False, elem_id='undo')
    return GrowthComponents(
        question=question,
        confirm=confirm,
        dismiss=dismiss,
        undo=undo,
        all=everything,
        label=name,
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
    parts: GrowthComponents, growth: Growth, chosen: gr.Dropdown
) -> None:
    """Bind the events for marked photos."""

    def mark(model: str) -> dict:
        marked = growth.list_marked(model)
        if not marked.photos:
            gr.Info(text('page.no_marked'))
        return parts.show_parts(marked.photos, marked.classes)

    def correct(
        title: str | None,
        name: str | None,
        photos: list[MarkedPhoto],
        corrections: dict[str, str | None],
    ) -> dict:
        path = next((x.path for x in photos if x.title == title), None)
        if path is not None:
            corrections = corrections | {path: name}
        return parts.show_corrections(photos, corrections)

    def move(
        title: str | None,
        name: str | None,
        photos: list[MarkedPhoto],
        corrections: dict[str, str | None],
    ) -> dict:
        if not name:
            gr.Warning(text('page.choose_right'))
            return {parts.corrections: corrections}
        return correct(title, name, photos, corrections)

    def remove(
        title: str | None,
        photos: list[MarkedPhoto],
        corrections: dict[str, str | None],
    ) -> dict:
        return correct(title, None, photos, corrections)

    marked = [*parts.show_parts([])]
    bind(parts.mark.click, mark, [chosen], marked)
    state = [parts.photos, parts.corrections]
    changed = [parts.corrections, parts.corrected, parts.apply, parts.photo]
    bind(parts.move.click, move, [parts.photo, parts.right, *state], changed)
    bind(parts.remove.click, remove, [parts.photo, *state], changed)
