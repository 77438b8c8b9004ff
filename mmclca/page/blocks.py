# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Layout, texts and events of the web page.

The texts are written for readers without knowledge of networks.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path

import gradio as gr
import numpy as np
import torch
from PIL import Image

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.gallery import Gallery
from mmclca.apis.neighbours import look_up
from mmclca.apis.output import PREDICTION
from mmclca.datasets.decoding import MAX_PIXELS
from mmclca.datasets.photographs import LabeledImages
from mmclca.models.classifiers import feature_of
from mmclca.registry import MODELS
from mmclca.utils.messages import first_of
from mmclca.visualization.painting import KEPT, MERGED
from mmclca.visualization.survivors import MIXED, SWATCHES, Survivors, legend

from .photos import read_photo
from .variants import Variants, predict_photo

QUEUE = 'model'  # parallel requests would slow each other
MEGABYTES = 50  # maximum file size
PREVIEW = 1024  # longer side of the shown photo, in pixels
SHOWN_CLASSES = 6
NUM_SIMILAR = 8
TITLE = 'Classify a photo, and see which patches the model uses'
INTRODUCTION = (
    'Drop a photo or scan below. The model splits it into patches, merges or '
    'drops some of them step by step, and predicts the class. Photos stay on '
    'the computer that runs this page, and are deleted within two hours.'
)
DROP_HERE = (
    '# Drop a photo here, or click\nJPEG, PNG, TIFF or WebP, up to '
    f'{MEGABYTES} MB and {MAX_PIXELS / 1e6:.0f} million pixels'
)
RATE = (
    'Share of tokens kept at each step: 0.5 keeps half of them. A lower '
    'rate costs less, but the model may make more mistakes.'
)
FIXED = 'Fixed at {:g}: this method was trained for this keep rate only.'
COSTS = ['Model', 'GMACs (billion multiply-accumulates)', 'Latency (ms)']
# legend; white and gray stand for swatches without a single color
COLORS = {SWATCHES[KEPT].text: '#ffffff', SWATCHES[MERGED].text: '#dddddd'}
COLORS = {look.text: look.fill for look in SWATCHES.values()} | COLORS
COLORS[MIXED.text] = '#ffa500'


class Callbacks:
    """Event handlers, which return new values for components of the page.

    They read photos in ``uploads`` only. With a ``gallery``, they look up its
    most similar images. A backbone without token reduction is refused with a
    ``ValueError``.
    """

    def __init__(
        self,
        inferencer: TokenReductionInferencer,
        uploads: str | Path,
        gallery: Gallery | None = None,
    ):
        self.variants = Variants(inferencer)
        self.gallery = gallery
        self.uploads = Path(uploads).resolve()

    def read_upload(self, upload: dict | None):
        """Read an uploaded photo; return its preview and the model input.

        Show a warning and return None twice if the photo cannot be used.
        """
        try:
            image = read_photo(self._uploaded(upload['path']))
            packed = self.variants.trained.prepare(image)
            if isinstance(packed, str):
                raise ValueError(f'The model cannot use this photo: {packed}')
        except (KeyError, OSError, TypeError, ValueError) as error:
            gr.Warning(escape(str(error)), duration=30)
            return None, None
        return _preview(image), packed

    def _uploaded(self, path: str) -> Path:
        """Resolve an upload path, or raise if the file is elsewhere."""
        # a forged request may name any file on this computer: Gradio accepts
        # such a path if "meta" is missing
        file = Path(path).resolve()
        if not file.is_relative_to(self.uploads):
            raise ValueError(
                'This file was not uploaded to this page. Please drop it here.'
            )
        return file

    def select_method(self, method: str):
        """Return the keep rate slider for a method."""
        fixed = self.variants.is_fixed(method)
        rate = self.variants.start.keep_rate
        given = dict(value=rate) if fixed else {}
        info = FIXED.format(rate) if fixed else RATE
        return gr.Slider(**given, interactive=not fixed, info=info)

    def predict(self, packed: dict | None, method: str, keep_rate: float):
        """Yield new values for the results, first without the cost.

        They are class scores, table row, pictures, legend and cost, which
        takes longer to measure. ``packed`` is the model input.
        """
        if packed is None:
            yield [None] * 5
            return
        found = predict_photo(self.variants.at(method, keep_rate), packed)
        looks = [(look.text, look.text) for look in legend([found.patches])]
        pictures = _pictures(found.patches)
        yield found.scores, [found.cells], pictures, looks, None
        costs = self.variants.costs(method, keep_rate, packed, found.gmacs)
        yield *[gr.skip()] * 4, costs

    @torch.no_grad()
    def find_similar(self, packed: dict | None):
        """Return similar gallery images with class and similarity."""
        if packed is None or self.gallery is None:
            return None
        model = self.variants.trained.model
        data = model.data_preprocessor(dict(inputs=[packed['inputs']]))
        feature = feature_of(model, data['inputs'], self.gallery.stage)
        leaf = LabeledImages.named(['leaf'], [None], 'the page')
        (entry,), _ = look_up(self.gallery, leaf, feature.cpu(), NUM_SIMILAR)
        return [
            (
                _preview(read_photo(one['image'])),
                f'{one["name"] or ""} {one["similarity"]:.2f}',
            )
            for one in entry['neighbours']
            if Path(one['image']).is_file()
        ]


def _preview(image: np.ndarray) -> Image.Image:
    """Convert a BGR image to RGB, at most ``PREVIEW`` pixels wide or high."""
    small = Image.fromarray(image[..., ::-1])
    small.thumbnail((PREVIEW, PREVIEW))
    return small


def _pictures(left: Survivors) -> list[tuple[np.ndarray, str]]:
    """Return the photo and its patches after each stage, with captions."""
    found = [(left.image, f'{left.hw[0] * left.hw[1]} patches')]
    for number, stage in enumerate(left.stages, start=1):
        kept = '' if stage.mixed else f'{stage.kept:.0%} {stage.kept_as}'
        text = f'{number}: {len(stage.weights)} tokens, {kept or "mixed"}'
        found.append((stage.picture, text))
    return found


def about_model(name: str, classes: Sequence[str]) -> str:
    """Describe a model by its file name and its classes, in one line."""
    listed = first_of(classes, SHOWN_CLASSES)
    return f'{name or "This model"}, {len(classes)} classes: {listed}'


def build_page(
    callbacks: Callbacks, examples: Sequence[str], about: str
) -> gr.Blocks:
    """Build the page from callbacks, example photos and a description."""
    # delete uploads older than an hour, every ten minutes
    with gr.Blocks(
        title=TITLE, analytics_enabled=False, delete_cache=(600, 3600)
    ) as page:
        gr.Markdown(f'# {TITLE}\n{INTRODUCTION}')
        gr.Textbox(about, container=False, label='Model', elem_id='model')
        with gr.Row():
            with gr.Column(scale=4, min_width=320):
                leaf, uploads = _drop_zone(examples)
                controls = _controls(callbacks.variants)
            with gr.Column(scale=7, min_width=480):
                results = _results(callbacks.gallery is not None)
        _connect(callbacks, leaf, uploads, *controls, *results)
    return page


def _drop_zone(examples: Sequence[str]):
    """Create the drop zone, with examples; return it and its upload events."""
    leaf = gr.Image(
        sources=['upload', 'clipboard'],
        placeholder=DROP_HERE,
        show_label=False,
        height=300,
        buttons=[],
        elem_id='leaf',
    )
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


def _controls(variants: Variants):
    """Create and return the choice of methods and the keep rate slider."""
    method = gr.Radio(
        [(_label(name, variants.own), name) for name in variants.methods],
        value=variants.start.method,
        label='Token-reduction method',
        elem_id='method',
    )
    rate, fixed = variants.start.keep_rate, variants.fixed
    keep_rate = gr.Slider(
        min(0.05, rate),
        1,
        rate,
        step=0.01,
        label='Keep rate',
        info=FIXED.format(rate) if fixed else RATE,
        interactive=not fixed,
        buttons=[],
        elem_id='keep_rate',
    )
    return method, keep_rate


def _label(method: str, own: str | None) -> str:
    """Label a method; ``own`` is the method used in training."""
    trained = ' (used in training)' if method == own else ''
    reducer = MODELS.get(method)  # None without a reducer
    summary = f': {reducer.summary}' if reducer and reducer.summary else ''
    return f'{method}{summary}{trained}'


def _results(with_gallery: bool) -> tuple[list, gr.Gallery]:
    """Create the outputs of a prediction and the gallery of similar images."""
    plain = dict(interactive=False, buttons=[])
    classes = gr.Label(label='Predictions', elem_id='classes')
    row = gr.Dataframe(headers=[*PREDICTION], elem_id='row', **plain)
    gr.Markdown('Patches after each step')
    pictures = gr.Gallery(
        columns=4,
        height=300,  # fits two stages
        show_label=False,
        format='png',
        elem_id='survivors',
        **plain,
    )
    looks = gr.HighlightedText(
        color_map=COLORS,
        show_inline_category=False,
        show_label=False,
        elem_id='legend',
    )
    alike = gr.Gallery(
        columns=4,
        label='Most similar images of the gallery (cosine similarity)',
        format='png',
        elem_id='alike',
        visible=with_gallery,
        **plain,
    )
    gr.Markdown('Inference cost of this photo')
    costs = gr.Dataframe(headers=COSTS, elem_id='costs', **plain)
    return [classes, row, pictures, looks, costs], alike


def _connect(
    callbacks: Callbacks, leaf, uploads, method, keep_rate, results, alike
) -> None:
    """Bind events to callbacks; each event ends with a prediction."""
    packed = gr.State()  # model input
    # no preprocessing: Gradio would decode the file before it is checked
    reads = callbacks.read_upload, [leaf], [leaf, packed], False
    changes = [
        *(_bind(upload, *reads) for upload in uploads),
        _bind(leaf.clear, lambda: None, [], [packed]),
        _bind(method.input, callbacks.select_method, [method], [keep_rate]),
    ]
    for change in changes[:-1]:  # a new photo, or none
        _bind(change.then, callbacks.find_similar, [packed], [alike])
    asked = [packed, method, keep_rate]
    for event in (*(change.then for change in changes), keep_rate.input):
        _bind(event, callbacks.predict, asked, results)


def _bind(event, callback, inputs: list, outputs: list, preprocess=True):
    """Bind an event to a callback; the last of several events wins."""
    return event(
        callback,
        inputs,
        outputs,
        concurrency_id=QUEUE,
        concurrency_limit=1,
        preprocess=preprocess,
        trigger_mode='always_last',
        show_progress='minimal',
        api_visibility='private',
    )
