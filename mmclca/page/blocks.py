# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The page: its parts, and which event calls what."""

from collections.abc import Sequence

import gradio as gr

from . import html, strings
from .callbacks import Callbacks

QUEUE = 'model'  # one request at a time, or they would slow each other


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
                pictures = _pictures(callbacks, examples)
                controls = _controls(callbacks)
            with gr.Column(scale=7, min_width=480):
                results = _results()
        _connect(callbacks, *pictures, *controls, results)
    return page


def _pictures(callbacks: Callbacks, examples: Sequence[str]):
    """Where a picture is dropped, what is wrong with it, and the events that
    bring a new one."""
    leaf = gr.Image(
        sources=['upload', 'clipboard'],
        placeholder=strings.drop_here(),
        show_label=False,
        height=300,
        buttons=[],
        elem_id='leaf',
    )
    problem = gr.HTML(visible=False, elem_id='problem')
    if not examples:
        return leaf, problem, [leaf.upload]
    drawn = gr.Examples(
        [[path] for path in examples],
        leaf,
        label=strings.DRAWN,
        examples_per_page=len(examples),
        elem_id='drawn',
        api_visibility='private',
    )
    return leaf, problem, [leaf.upload, drawn.load_input_event.then]


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


def _results() -> list[gr.HTML]:
    """The best classes, the leaf step by step, and what it costs."""
    names = ('classes', 'survivors', 'costs')
    return [
        gr.HTML(text, container=True, elem_id=name)
        for name, text in zip(names, html.nothing_yet(), strict=True)
    ]


def _connect(
    callbacks: Callbacks, leaf, problem, uploads, method, keep_rate, results
) -> None:
    """Bind events to callbacks; after each of them comes a prediction."""
    # the picture as the model takes it, and its multiply-accumulates
    packed, gmacs = gr.State(), gr.State()
    shown = [leaf, packed, problem]
    changes = [
        # Gradio itself would decode the file before any check
        _bind(upload, callbacks.read_upload, [leaf], shown, preprocess=False)
        for upload in uploads
    ]
    changes += [
        _bind(leaf.clear, callbacks.clear, [], shown[1:]),
        _bind(method.input, callbacks.select_method, [method], [keep_rate]),
    ]
    asked = [packed, method, keep_rate]
    for event in (*(change.then for change in changes), keep_rate.input):
        predicted = _bind(event, callbacks.predict, asked, [*results, gmacs])
        _bind(predicted.then, callbacks.measure, [*asked, gmacs], results[-1:])


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
