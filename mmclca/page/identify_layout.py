# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Components of the first tab, and their values for a photo."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import gradio as gr

from mmclca.languages import text

from .handlers import bind_model
from .identify import Identification, IdentifyTab
from .language import label
from .loaded_model import ModelVersion
from .photos import list_examples
from .plant import MIN_CLASSES, PlantAnswer, SeenPlant

# browsers may not know the last two as images
PHOTO_TYPES = ['image', '.heic', '.heif']


@dataclass(frozen=True)
class PhotoComponents:
    """Components of the tab.

    ``plant`` is the :class:`.SeenPlant` for the explore tab, None without a
    photo.
    """

    photo: gr.Image
    another: gr.UploadButton
    restart: gr.Button
    among: gr.Dropdown
    classes: gr.Label
    verdict: gr.Markdown
    similar: gr.Gallery
    plant: gr.State

    @property
    def outputs(self) -> list:
        """Components with values for a photo."""
        return [
            self.photo,
            self.another,
            self.restart,
            self.classes,
            self.verdict,
            self.similar,
            self.plant,
        ]

    def show(self, photo: Identification | None) -> dict:
        """Return the values for a photo, by component."""
        if photo is None:
            return self.clear()
        if photo.similar is not None:
            gallery = gr.Gallery(photo.similar, visible=bool(photo.similar))
            return {self.similar: gallery}
        return {
            self.photo: photo.preview,
            self.another: gr.UploadButton(visible=True),
            self.restart: gr.Button(visible=True),
            self.similar: gr.Gallery(visible=False),  # the previous photo's
            self.plant: photo.plant,
            **self.show_answer(photo.answer),
        }

    def show_answer(self, answer: PlantAnswer) -> dict:
        """Return the values for an answer, by component."""
        # the scores of an unknown class would look certain
        scores: str | dict[str, float] = answer.prediction.scores
        if answer.unknown:
            scores = text('page.unknown')
        return {self.classes: scores, self.verdict: answer.verdict}

    def clear(self) -> dict:
        """Return empty values, by component; chosen classes stay."""
        return {
            **dict.fromkeys(self.outputs),
            self.another: gr.UploadButton(visible=False),
            self.restart: gr.Button(visible=False),
            self.similar: gr.Gallery(None, visible=False),
        }

    def show_classes(self, classes: Sequence[str]) -> dict:
        """Return the values for the classes of another model."""
        can_choose = len(classes) > MIN_CLASSES
        return {
            self.among: gr.Dropdown(
                classes, value=None, multiselect=True, visible=can_choose
            )
        }


def build_identify(tab: IdentifyTab, version: gr.State) -> PhotoComponents:
    """Create the components in the current tab, and bind their events.

    ``version`` is the key for the chosen model.
    """
    with gr.Row():
        with gr.Column(scale=4, min_width=320):
            photo = gr.Image(
                sources=['upload', 'clipboard'],
                placeholder=label('label.identify.drop'),
                show_label=False,
                height=300,
                buttons=[],
                elem_id='leaf',
            )
            uploads = [photo.upload, *_add_examples(tab, photo)]
        with gr.Column(scale=7, min_width=320):
            classes = gr.Label(show_label=False, elem_id='classes')
            verdict = gr.Markdown(elem_id='verdict')
            with gr.Row():
                another = gr.UploadButton(
                    label('label.identify.another'),
                    file_types=PHOTO_TYPES,
                    scale=2,
                    visible=False,
                    elem_id='another',
                )
                restart = gr.Button(
                    label('label.identify.restart'),
                    scale=1,
                    visible=False,
                    elem_id='restart',
                )
            similar = gr.Gallery(
                label=label('label.identify.similar'),
                format='jpeg',
                visible=False,
                buttons=[],
                elem_id='similar',
            )
    among = gr.Dropdown(
        [],
        multiselect=True,
        visible=False,
        label=label('label.identify.among'),
        info=label('label.identify.among_info'),
        elem_id='among',
    )
    parts = PhotoComponents(
        photo=photo,
        another=another,
        restart=restart,
        among=among,
        classes=classes,
        verdict=verdict,
        similar=similar,
        plant=gr.State(),
    )
    _bind_events(tab, parts, uploads, version)
    return parts


def _bind_events(
    tab: IdentifyTab, parts: PhotoComponents, uploads: list, version: gr.State
) -> None:
    """Bind the events; ``uploads`` are those of a first photo."""

    def identify(
        upload: object, chosen: ModelVersion | None, among: list[str]
    ) -> Iterator[dict]:
        for photo in tab.identify(upload, chosen, among):
            yield parts.show(photo)

    def add_photo(
        upload: object, plant: SeenPlant | None, among: list[str]
    ) -> Iterator[dict]:
        yield {parts.plant: plant}  # an unusable photo changes nothing
        for photo in tab.add_photo(upload, plant, among):
            yield parts.show(photo)

    def restrict(plant: SeenPlant | None, among: list[str]) -> dict:
        if plant is None:
            return dict.fromkeys([parts.classes, parts.verdict])
        return parts.show_answer(plant.answer(among))

    # no preprocessing: Gradio would decode the file before it is checked
    for upload in uploads:
        bind_model(
            upload,
            identify,
            [parts.photo, version, parts.among],
            parts.outputs,
            preprocess=False,
        )
    bind_model(
        parts.another.upload,
        add_photo,
        [parts.another, parts.plant, parts.among],
        parts.outputs,
        preprocess=False,
    )
    bind_model(
        parts.among.input,
        restrict,
        [parts.plant, parts.among],
        [parts.classes, parts.verdict],
    )
    for clear in (parts.photo.clear, parts.restart.click):
        bind_model(clear, parts.clear, [], parts.outputs)


def _add_examples(tab: IdentifyTab, photo: gr.Image) -> list:
    """Add synthetic leaves to try, if any; return the events of a choice."""
    classes = tab.model.inferencer.classes if tab.model else []
    paths = list_examples(classes, tab.uploads)
    if not paths:
        return []
    examples = gr.Examples(
        [[path] for path in paths],
        photo,
        label=label('label.identify.examples'),
        examples_per_page=len(paths),
        elem_id='drawn',
        api_visibility='private',
    )
    return [examples.load_input_event.then]
