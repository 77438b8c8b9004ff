# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Second tab of the page: methods of token reduction for the same photo."""

from collections.abc import Iterator

import gradio as gr
import numpy as np

from mmclca.registry import MODELS
from mmclca.visualization.kept_patches import (
    MIXED,
    SWATCHES,
    KeptPatches,
    legend,
)
from mmclca.visualization.painting import KEPT, MERGED

from .events import bind
from .variants import classify, remaining_patches

INTRODUCTION = (
    'The model splits the photo of the first tab into patches, and merges or '
    'drops some of them step by step. Drop a photo there first.'
)
RATE = (
    'Share of tokens kept at each step: 0.5 keeps half of them. A lower '
    'rate costs less, but the model may make more mistakes.'
)
FIXED = 'Fixed at {:g}: this method was trained for this keep rate only.'
COSTS = ['Model', 'GMACs', 'Latency (ms)']
# legend; white and gray stand for swatches without a single color
COLORS = {SWATCHES[KEPT].text: '#ffffff', SWATCHES[MERGED].text: '#dddddd'}
COLORS = {look.text: look.fill for look in SWATCHES.values()} | COLORS
COLORS[MIXED.text] = '#ffa500'


def show_methods(seen: tuple | None, method: str | None, keep_rate: float):
    """Return method choice and keep rate slider for the model of a photo.

    A method that the user chose stays if the model has it.
    """
    if seen is None:
        return gr.skip(), gr.skip()
    variants = seen[0].variants
    start, rate = variants.start, variants.start.keep_rate
    if method not in variants.methods:
        method, keep_rate = start.method, rate
    choices = [(_label(name, variants.own), name) for name in variants.methods]
    fixed = variants.is_fixed(method)
    return gr.Dropdown(choices, value=method), gr.Slider(
        min(0.05, rate),
        value=rate if fixed else keep_rate,
        interactive=not fixed,
        info=FIXED.format(rate) if fixed else RATE,
    )


def _label(method: str, own: str | None) -> str:
    """Label a method; ``own`` is the method used in training."""
    trained = ' (used in training)' if method == own else ''
    reducer = MODELS.get(method)  # None without a reducer
    summary = f': {reducer.summary}' if reducer and reducer.summary else ''
    return f'{method}{summary}{trained}'


def explore(
    seen: tuple | None, method: str, keep_rate: float
) -> Iterator[list]:
    """Yield new values for the results, first without the cost.

    They are class scores, pictures, legend and cost, which takes longer to
    measure.
    """
    if seen is None:
        yield [None] * 4
        return
    model, packed = seen
    variant = model.variants.at(method, keep_rate)
    result = classify(variant, packed, with_tokens=True)
    left = remaining_patches(variant, packed)
    looks = [(look.text, look.text) for look in legend([left])]
    yield result['scores'], _pictures(left), looks, None
    costs = model.variants.costs(method, keep_rate, packed, result['gmacs'])
    yield *[gr.skip()] * 3, costs


def _pictures(left: KeptPatches) -> list[tuple[np.ndarray, str]]:
    """Return the photo and its patches after each stage, with captions."""
    found = [(left.image, f'{left.hw[0] * left.hw[1]} patches')]
    for number, stage in enumerate(left.stages, start=1):
        kept = '' if stage.mixed else f'{stage.kept:.0%} {stage.kept_as}'
        text = f'{number}: {len(stage.weights)} tokens, {kept or "mixed"}'
        found.append((stage.picture, text))
    return found


def build_explore(seen: gr.State, opened: gr.Tab) -> None:
    """Create the components in the current tab, and bind their events.

    ``seen`` is the photo of the first tab: the :class:`.OpenedModel` and its
    input; None without a photo. Nothing is computed before the tab
    is ``opened``.
    """
    gr.Markdown(INTRODUCTION)
    with gr.Row():
        with gr.Column(scale=4, min_width=320):
            method = gr.Dropdown(
                [], label='Method', filterable=False, elem_id='method'
            )
            keep_rate = gr.Slider(
                0.05,
                1,
                0.5,
                step=0.01,
                label='Keep rate',
                buttons=[],
                elem_id='keep_rate',
            )
            classes = gr.Label(label='Predictions', elem_id='explored')
        with gr.Column(scale=7, min_width=320):
            results = [classes, *_results()]
    asked = [seen, method, keep_rate]
    for event in (opened.select, method.input):
        shown = bind(event, show_methods, asked, [method, keep_rate])
        bind(shown.then, explore, asked, results)
    bind(keep_rate.input, explore, asked, results)


def _results() -> list:
    """Create pictures, legend and cost."""
    gr.Markdown('Patches after each step')
    pictures = gr.Gallery(
        show_label=False, format='png', buttons=[], elem_id='survivors'
    )
    looks = gr.HighlightedText(
        color_map=COLORS,
        show_inline_category=False,
        show_label=False,
        elem_id='legend',
    )
    gr.Markdown('Inference cost (GMACs: billion multiply-accumulates)')
    costs = gr.Dataframe(headers=COSTS, buttons=[], elem_id='costs')
    return [pictures, looks, costs]
