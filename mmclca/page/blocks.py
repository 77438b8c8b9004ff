# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Layout of the web page: its tabs, and their update for another model."""

from collections.abc import Callable

import gradio as gr

from .explore import build_explore
from .identify import Identification, build_identify

TITLE = 'Identify a photo'
INTRODUCTION = (
    'Drop a photo below, and the model names it. Photos stay on the computer '
    'that runs this page, and are deleted within two hours.'
)


def build_page(identification: Identification) -> gr.Blocks:
    """Build the page of a model."""
    # delete uploads older than an hour, every ten minutes
    with gr.Blocks(
        title=TITLE, analytics_enabled=False, delete_cache=(600, 3600)
    ) as page:
        gr.Markdown(f'# {TITLE}\n{INTRODUCTION}')
        with gr.Tabs():
            build_tabs(identification)
    return page


def build_tabs(identification: Identification) -> tuple[Callable, list]:
    """Create the tabs of a model in the current ``gr.Tabs``.

    Return an event handler without inputs, and its outputs, that show another
    model set since.
    """
    model = identification.model
    with gr.Tab('Identify', id='identify'):
        results = build_identify(identification)
        about = gr.Textbox(
            identification.about(),
            label='Model',
            interactive=False,
            elem_id='model',
        )
    explored = gr.Tab('Explore token reduction', visible=_can_reduce(model))
    with explored:
        build_explore(results[1], explored)

    def show_model():
        shown = _can_reduce(identification.model)
        values = identification.about(), gr.Tab(visible=shown)
        return [*identification.clear(), *values]

    return show_model, [*results, about, explored]


def _can_reduce(model) -> bool:
    return model is not None and model.can_reduce
