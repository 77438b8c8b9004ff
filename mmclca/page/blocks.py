# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The page: its parts, and which event calls what."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import gradio as gr

from . import html, strings
from .callbacks import Callbacks

QUEUE = 'model'  # one request at a time, or they would slow each other


@dataclass
class Parts:
    """The inputs and outputs of the page.

    Args:
        leaf (gr.Image): Where a picture is dropped.
        problem (gr.HTML): What is wrong with a picture.
        method (gr.Radio): The method.
        keep_rate (gr.Slider): Its keep rate.
        classes (gr.HTML): The best classes.
        survivors (gr.HTML): The leaf step by step.
        costs (gr.HTML): What it costs to compute.
        packed (gr.State): The picture as the model takes it.
        gmacs (gr.State): Its multiply-accumulates.
    """

    leaf: gr.Image
    problem: gr.HTML
    method: gr.Radio
    keep_rate: gr.Slider
    classes: gr.HTML
    survivors: gr.HTML
    costs: gr.HTML
    packed: gr.State = field(default_factory=gr.State)
    gmacs: gr.State = field(default_factory=gr.State)


def build_page(
    callbacks: Callbacks, examples: Sequence[str], about: str
) -> gr.Blocks:
    """The page of a trained model.

    Args:
        callbacks (Callbacks): What it does.
        examples (Sequence[str]): Paths of pictures to try; may be none.
        about (str): HTML of what is said of the model.

    Returns:
        gr.Blocks: The page; see :func:`mmclca.page.server.served`.
    """
    # what was uploaded is deleted after an hour, looked for every ten minutes
    with gr.Blocks(
        title=strings.TITLE, analytics_enabled=False, delete_cache=(600, 3600)
    ) as page:
        heading = f'# {strings.TITLE}\n{strings.INTRODUCTION}'
        gr.Markdown(heading, elem_id='heading')
        gr.HTML(about, elem_id='model')
        with gr.Row():
            with gr.Column(scale=4, min_width=320):
                leaf, problem, drawn = _pictures(callbacks, examples)
                controls = _controls(callbacks)
            with gr.Column(scale=7, min_width=480):
                parts = Parts(leaf, problem, *controls, *_results())
        _connect(parts, callbacks, drawn)
    return page


def _pictures(callbacks: Callbacks, examples: Sequence[str]):
    leaf = gr.Image(
        sources=['upload', 'clipboard'],
        placeholder=strings.drop_here(callbacks.limits),
        show_label=False,
        height=300,
        buttons=[],
        elem_id='leaf',
    )
    problem = gr.HTML(visible=False, elem_id='problem')
    return leaf, problem, _examples(leaf, examples) if examples else None


def _examples(leaf: gr.Image, paths: Sequence[str]) -> gr.Examples:
    return gr.Examples(
        [[path] for path in paths],
        leaf,
        label=strings.DRAWN,
        examples_per_page=len(paths),
        elem_id='drawn',
        api_visibility='private',
    )


def _controls(callbacks: Callbacks):
    methods, start = callbacks.variants.methods, callbacks.variants.start
    method = gr.Radio(
        [(strings.method_label(m), name) for name, m in methods.items()],
        value=start.name,
        label=strings.METHOD,
        elem_id='method',
    )
    keep_rate = gr.Slider(
        min(0.05, start.keep_rate),
        1,
        start.keep_rate,
        step=0.01,
        label=strings.KEEP_RATE,
        info=strings.about_keep_rate(start),
        interactive=not start.fixed,
        buttons=[],
        elem_id='keep_rate',
    )
    return method, keep_rate


def _results():
    classes, survivors, costs = html.nothing_yet()
    return (
        gr.HTML(classes, container=True, elem_id='classes'),
        gr.HTML(survivors, container=True, elem_id='survivors'),
        gr.HTML(costs, container=True, elem_id='costs'),
    )


def _connect(parts: Parts, callbacks: Callbacks, drawn) -> None:
    """Bind events to callbacks; after each of them comes a prediction."""
    leaf, method, keep_rate = parts.leaf, parts.method, parts.keep_rate
    shown = [leaf, parts.packed, parts.problem]
    uploads = [leaf.upload]
    if drawn:
        uploads.append(drawn.load_input_event.then)
    changes = [
        # Gradio itself would decode the file before any check
        *(
            _bind(upload, callbacks.read_upload, [leaf], shown, False)
            for upload in uploads
        ),
        _bind(leaf.clear, callbacks.clear, [], shown[1:]),
        _bind(method.input, callbacks.select_method, [method], [keep_rate]),
    ]
    for event in (*(change.then for change in changes), keep_rate.input):
        _predict(event, parts, callbacks)


def _predict(event, parts: Parts, callbacks: Callbacks) -> None:
    asked = [parts.packed, parts.method, parts.keep_rate]
    seen = [parts.classes, parts.survivors, parts.costs, parts.gmacs]
    predicted = _bind(event, callbacks.predict, asked, seen)
    asked.append(parts.gmacs)
    _bind(predicted.then, callbacks.measure, asked, [parts.costs])


def _bind(event, callback, inputs: list, outputs: list, preprocess=True):
    """Bind an event to a callback; of several in a row the last one counts."""
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
