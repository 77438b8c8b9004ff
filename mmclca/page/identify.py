# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""First tab of the page: name a photo, and show similar training photos.

The texts are written for readers without knowledge of networks.
"""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

import gradio as gr
from PIL import Image

from mmclca.datasets.decoding import FORMATS, MAX_PIXELS
from mmclca.errors import Error
from mmclca.evaluation.open_set import NEAREST, Threshold

from .events import bind
from .limits import MEGABYTES
from .opened import OpenedModel, open_version
from .photos import examples_for, preview, read_photo
from .uploads import uploaded
from .variants import classify

DROP_HERE = (
    '# Drop a photo here, or click\nJPEG, PNG, TIFF, WebP'
    f'{", HEIC" * ("HEIF" in FORMATS)}, up to '
    f'{MEGABYTES} MB and {MAX_PIXELS / 1e6:.0f} million pixels'
)


class Identification:
    """Event handlers for the tab, with a model unless each visitor chooses it.

    They read photos in ``uploads`` only.
    """

    def __init__(self, uploads: str | Path, model: OpenedModel | None = None):
        self.uploads, self.model = Path(uploads).resolve(), model

    def chosen(self, opened: tuple[Path, int] | None) -> OpenedModel | None:
        """Return the page's model, or the one chosen in the form."""
        return self.model or (open_version(*opened) if opened else None)

    def identify(
        self, upload: dict | None, opened: tuple[Path, int] | None = None
    ) -> Iterator[list]:
        """Yield new values for the tab, first without similar photos.

        They are preview, model with its input, verdict, name with scores, and
        similar photos. If the photo cannot be used, warn and clear the tab.
        """
        try:
            model = self.chosen(opened)
            if model is None:
                raise Error('There is no model yet. Please train one.')
            image = read_photo(uploaded(upload['path'], self.uploads))
            packed = model.inferencer.prepare(image)
            if isinstance(packed, str):
                raise Error(f'The model cannot use this photo: {packed}')
            result = classify(model.inferencer, packed)
        except (KeyError, OSError, TypeError, ValueError) as error:
            gr.Warning(escape(str(error)), duration=30)
            yield self.clear()
            return
        shown = preview(Image.fromarray(image[..., ::-1]))
        verdict = describe_unknown(result, model.inferencer.threshold)
        hidden = gr.Gallery(visible=False)  # shows the previous photo
        # the scores of an unknown class would look certain
        name = 'Unknown' if verdict else result['scores']
        yield shown, (model, packed), verdict, name, hidden
        similar = model.similar(packed)
        yield *[gr.skip()] * 4, gr.Gallery(similar, visible=bool(similar))

    def clear(self) -> list:
        """Return empty values for the tab."""
        return [*[None] * 4, gr.Gallery(None, visible=False)]


def describe_unknown(result: dict, threshold: Threshold | None) -> str:
    """Describe a photo of an unknown class, else return an empty text."""
    if result['known'] in (None, True):
        return ''
    is_near = threshold.score == NEAREST
    kind = 'Similarity to the training photos' if is_near else 'Score'
    nearest = next(iter(result['scores']))
    return (
        '### This photo may show none of the known classes\nNearest class: '
        f'**{_plain(nearest)}**. {kind} {result["known_score"]:.3f}, below '
        f'the threshold {threshold.threshold:.3f}.'
    )


def _plain(name: str) -> str:
    """Escape a name for Markdown."""
    return re.sub(r'([\\`*_\[\]<>#|~&])', r'\\\1', name)


def build_identify(identification: Identification, opened: gr.State) -> list:
    """Create the components in the current tab, and bind their events.

    ``opened`` is the key for the chosen model. Return the outputs for
    :meth:`Identification.identify`.
    """
    with gr.Row():
        with gr.Column(scale=4, min_width=320):
            leaf, uploads = _drop_zone(identification)
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
    seen = gr.State()
    outputs = [leaf, seen, verdict, classes, similar]
    for upload in uploads:
        # no preprocessing: Gradio would decode the file before it is checked
        bind(upload, identification.identify, [leaf, opened], outputs, False)
    bind(leaf.clear, identification.clear, [], outputs)
    return outputs


def _drop_zone(identification: Identification):
    """Create the drop zone, with examples; return it and its upload events."""
    leaf = gr.Image(
        sources=['upload', 'clipboard'],
        placeholder=DROP_HERE,
        show_label=False,
        height=300,
        buttons=[],
        elem_id='leaf',
    )
    model = identification.model
    classes = model.inferencer.classes if model else []
    examples = examples_for(classes, identification.uploads)
    if not examples:
        return leaf, [leaf.upload]
    drawn = gr.Examples(
        [[path] for path in examples],
        leaf,
        label='Synthetic leaves to try',
        examples_per_page=len(examples),
        elem_id='drawn',
        api_visibility='private',
    )
    return leaf, [leaf.upload, drawn.load_input_event.then]
