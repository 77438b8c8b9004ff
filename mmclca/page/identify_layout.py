# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Components of the first tab, and their values for a photo."""

from collections.abc import Iterator
from dataclasses import dataclass

import gradio as gr

from mmclca.datasets.decoding import FORMATS, MAX_PIXELS

from .handlers import bind_model
from .identify import Answer, IdentifyTab
from .limits import MEGABYTES
from .loaded_model import ModelVersion
from .photos import list_examples

DROP_HERE = (
    '# Drop a photo here, or click\nJPEG, PNG, TIFF, WebP'
    f'{", HEIC" * ("HEIF" in FORMATS)}, up to '
    f'{MEGABYTES} MB and {MAX_PIXELS / 1e6:.0f} million pixels'
)


@dataclass(frozen=True)
class PhotoComponents:
    """Components of the tab.

    ``seen`` is the :class:`.SeenPhoto` for the second tab, None without a
    photo.
    """

    photo: gr.Image
    classes: gr.Label
    verdict: gr.Markdown
    similar: gr.Gallery
    seen: gr.State

    @property
    def outputs(self) -> list:
        """All components."""
        return [
            self.photo,
            self.classes,
            self.verdict,
            self.similar,
            self.seen,
        ]

    def show(self, answer: Answer | None) -> dict:
        """Return the values for a photo, by component."""
        if answer is None:
            return self.clear()
        if answer.similar is not None:
            gallery = gr.Gallery(answer.similar, visible=bool(answer.similar))
            return {self.similar: gallery}
        # the scores of an unknown class would look certain
        label = 'Unknown' if answer.verdict else answer.prediction.scores
        return {
            self.photo: answer.preview,
            self.classes: label,
            self.verdict: '\n\n'.join(
                filter(None, [answer.verdict, answer.guarantee])
            ),
            self.similar: gr.Gallery(visible=False),  # the previous photo's
            self.seen: answer.seen,
        }

    def clear(self) -> dict:
        """Return empty values, by component."""
        empty = dict.fromkeys(self.outputs)
        return empty | {self.similar: gr.Gallery(None, visible=False)}


def build_identify(tab: IdentifyTab, version: gr.State) -> PhotoComponents:
    """Create the components in the current tab, and bind their events.

    ``version`` is the key for the chosen model.
    """
    with gr.Row():
        with gr.Column(scale=4, min_width=320):
            photo = gr.Image(
                sources=['upload', 'clipboard'],
                placeholder=DROP_HERE,
                show_label=False,
                height=300,
                buttons=[],
                elem_id='leaf',
            )
            uploads = [photo.upload, *_add_examples(tab, photo)]
        with gr.Column(scale=7, min_width=320):
            classes = gr.Label(show_label=False, elem_id='classes')
            verdict = gr.Markdown(elem_id='verdict')
            similar = gr.Gallery(
                label='Similar training photos (1 = identical)',
                format='jpeg',
                visible=False,
                buttons=[],
                elem_id='similar',
            )
    parts = PhotoComponents(photo, classes, verdict, similar, gr.State())

    def identify(
        upload: object, chosen: ModelVersion | None
    ) -> Iterator[dict]:
        for answer in tab.identify(upload, chosen):
            yield parts.show(answer)

    for upload in uploads:
        # no preprocessing: Gradio would decode the file before it is checked
        bind_model(
            upload, identify, [photo, version], parts.outputs, preprocess=False
        )
    bind_model(photo.clear, parts.clear, [], parts.outputs)
    return parts


def _add_examples(tab: IdentifyTab, photo: gr.Image) -> list:
    """Add synthetic leaves to try, if any; return the events of a choice."""
    classes = tab.model.inferencer.classes if tab.model else []
    paths = list_examples(classes, tab.uploads)
    if not paths:
        return []
    examples = gr.Examples(
        [[path] for path in paths],
        photo,
        label='Synthetic leaves to try',
        examples_per_page=len(paths),
        elem_id='drawn',
        api_visibility='private',
    )
    return [examples.load_input_event.then]
