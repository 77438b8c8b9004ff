# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Second tab of the page: methods of token reduction for the same photo."""

from collections.abc import Iterator

import gradio as gr
import numpy as np

from mmclca.registry import MODELS
from mmclca.visualization.painting import KEPT, MERGED
from mmclca.visualization.survivors import MIXED, SWATCHES, Survivors, legend

from .events import bind
from .opened import Seen
from .variants import Variants, predict_photo

INTRODUCTION = (
    'The model splits the photo into patches, and merges or drops some of them '
    'step by step. Here you see which ones, for the photo of the first tab.'
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


def show_methods(seen: Seen | None, method: str | None, keep_rate: float):
    """Return method choice and keep rate slider for the model of a photo.

    A method that the user chose stays if the model has it.
    """
    if seen is None:
        return gr.skip(), gr.skip()
    variants = seen.model.variants
    if method not in variants.methods:
        method = variants.start.method
        keep_rate = variants.start.keep_rate
    choices = [(_label(name, variants.own), name) for name in variants.methods]
    slider = _slider(variants, method, keep_rate)
    return gr.Dropdown(choices, value=method), slider


def _label(method: str, own: str | None) -> str:
    """Label a method; ``own`` is the method used in training."""
    trained = ' (used in training)' if method == own else ''
    reducer = MODELS.get(method)  # None without a reducer
    summary = f': {reducer.summary}' if reducer and reducer.summary else ''
    return f'{method}{summary}{trained}'


def _slider(variants: Variants, method: str, keep_rate: float) -> gr.Slider:
    """Return the keep rate slider for a method."""
    fixed, rate = variants.is_fixed(method), variants.start.keep_rate
    return gr.Slider(
        min(0.05, rate),
        value=rate if fixed else keep_rate,
        interactive=not fixed,
        info=FIXED.format(rate) if fixed else RATE,
    )


def select_method(seen: Seen | None, method: str, keep_rate: float):
    """Return the keep rate slider for another method."""
    return seen and _slider(seen.model.variants, method, keep_rate)


def explore(
    seen: Seen | None, method: str, keep_rate: float
) -> Iterator[list]:
    """Yield new values for the results, first without the cost.

    They are class scores, pictures, legend and cost, which takes longer to
    measure.
    """
    if seen is None:
        yield [None] * 4
        return
    variants, packed = seen.model.variants, seen.packed
    found = predict_photo(variants.at(method, keep_rate), packed)
    looks = [(look.text, look.text) for look in legend([found.patches])]
    yield found.scores, _pictures(found.patches), looks, None
    costs = variants.costs(method, keep_rate, packed, found.gmacs)
    yield *[gr.skip()] * 3, costs


def _pictures(left: Survivors) -> list[tuple[np.ndarray, str]]:
    """Return the photo and its patches after each stage, with captions."""
    found = [(left.image, f'{left.hw[0] * left.hw[1]} patches')]
    for number, stage in enumerate(left.stages, start=1):
        kept = '' if stage.mixed else f'{stage.kept:.0%} {stage.kept_as}'
        text = f'{number}: {len(stage.weights)} tokens, {kept or "mixed"}'
        found.append((stage.picture, text))
    return found


def build_explore(seen: gr.State, opened: gr.Tab) -> None:
    """Create the components in the current tab, and bind their events.

    ``seen`` is the photo of the first tab. Nothing is computed before the tab
    is ``opened``.
    """
    gr.Markdown(INTRODUCTION)
    with gr.Row():
        with gr.Column(scale=4, min_width=320):
            method = gr.Dropdown(
                [],
                label='Token-reduction method',
                filterable=False,
                elem_id='method',
            )
            keep_rate = gr.Slider(
                0.05,
                1,
                0.5,
                step=0.01,
                label='Keep rate',
                info=RATE,
                buttons=[],
                elem_id='keep_rate',
            )
            classes = gr.Label(label='Predictions', elem_id='explored')
        with gr.Column(scale=7, min_width=320):
            results = [classes, *_results()]
    asked, controls = [seen, method, keep_rate], [method, keep_rate]
    changes = [
        bind(opened.select, show_methods, asked, controls).then,
        bind(method.input, select_method, asked, [keep_rate]).then,
        keep_rate.input,
    ]
    for change in changes:
        bind(change, explore, asked, results)


def _results() -> list:
    """Create pictures, legend and cost."""
    plain = dict(interactive=False, buttons=[])
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
    gr.Markdown('Inference cost of this photo')
    costs = gr.Dataframe(headers=COSTS, elem_id='costs', **plain)
    return [pictures, looks, costs]
