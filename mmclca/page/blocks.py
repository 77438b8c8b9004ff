# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The page: its parts, and what happens where."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import gradio as gr

from . import html, strings
from .callbacks import Answers

QUEUE = 'model'  # one question at a time, lest they slow each other down


@dataclass
class Parts:
    """What is asked and answered on the page.

    Args:
        leaf (gr.Image): The place for a picture.
        problem (gr.HTML): What is wrong with a picture.
        method (gr.Radio): Which method.
        keep_rate (gr.Slider): Its keep rate.
        classes (gr.HTML): The best classes.
        survivors (gr.HTML): The leaf step by step.
        costs (gr.HTML): The work for it.
        packed (gr.State): The picture as the model takes it.
        gmacs (gr.State): The work counted.
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
    answers: Answers, examples: Sequence[str], about: str
) -> gr.Blocks:
    """The page of a trained model.

    Args:
        answers (Answers): What it answers.
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
                leaf, problem, drawn = _pictures(answers, examples)
                controls = _controls(answers)
            with gr.Column(scale=7, min_width=480):
                parts = Parts(leaf, problem, *controls, *_results())
        _connect(parts, answers, drawn)
    return page


def _pictures(answers: Answers, examples: Sequence[str]):
    leaf = gr.Image(
        sources=['upload', 'clipboard'],
        placeholder=strings.drop_here(answers.limits),
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


def _controls(answers: Answers):
    methods, start = answers.variants.methods, answers.variants.start
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


def _connect(parts: Parts, answers: Answers, drawn) -> None:
    """Say what happens where; whatever is asked, the leaf is looked at."""
    leaf, taken = parts.leaf, [parts.leaf, parts.packed, parts.problem]
    events = [leaf.upload]
    if drawn:
        events.append(drawn.load_input_event.then)
    for event in events:
        # Gradio itself would decode the file ahead of any check
        new = _on(event, answers.take, [leaf], taken, preprocess=False)
        _look(new.then, parts, answers)
    gone = _on(leaf.clear, answers.forget, [], taken[1:])
    _look(gone.then, parts, answers)
    method, keep_rate = parts.method, parts.keep_rate
    changed = _on(method.input, answers.choose, [method], [keep_rate])
    _look(changed.then, parts, answers)
    _look(keep_rate.input, parts, answers)


def _look(event, parts: Parts, answers: Answers) -> None:
    asked = [parts.packed, parts.method, parts.keep_rate]
    seen = [parts.classes, parts.survivors, parts.costs, parts.gmacs]
    looked = _on(event, answers.look, asked, seen)
    _on(looked.then, answers.time, [*asked, parts.gmacs], [parts.costs])


def _on(event, answer, inputs: list, outputs: list, preprocess=True):
    """Let an event be answered, the last one of several in a row."""
    return event(
        answer,
        inputs,
        outputs,
        concurrency_id=QUEUE,
        concurrency_limit=1,
        preprocess=preprocess,
        trigger_mode='always_last',
        show_progress='minimal',
        api_visibility='private',
    )
