# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Web page layout: its tabs, and their update for another model."""

from collections.abc import Callable
from functools import partial

import gradio as gr

from .explore import build_explore
from .form import FitForm, build_form
from .identify import Identification, build_identify

TITLE, EXPLORE = 'Identify a photo', 'explore token reduction'
PRIVACY = (
    'Photos stay on the computer that runs this page, and are deleted after '
    'two hours.'
)
# as many columns as fit, also on a phone; columns of the log are aligned
CSS = (
    '.grid-container { grid-template-columns: '
    'repeat(auto-fill, minmax(130px, 1fr)) !important } '
    '#log textarea { font-family: var(--font-mono) }'
)


def build_page(
    identification: Identification, form: FitForm | None = None
) -> gr.Blocks:
    """Build the page of a model, with a form to fit it."""
    # delete uploads older than an hour, every ten minutes
    with gr.Blocks(
        title=TITLE, analytics_enabled=False, delete_cache=(600, 3600)
    ) as page:
        opened = gr.State()  # the visitor's model, chosen in the form
        with gr.Tabs() as tabs:
            if form:
                with gr.Tab('Train', id='train'):
                    values, attempt = build_form(form, opened)
            shown = build_tabs(identification, opened)
        page.load(*shown, queue=False, api_visibility='private')
        if form:
            opened.change(*shown, api_visibility='private')
            page.load(form.load, [], values, api_visibility='private')
            identify = partial(gr.Tabs, selected='identify')
            attempt.click(identify, [], [tabs], api_visibility='private')
    return page


def build_tabs(
    identification: Identification, opened: gr.State
) -> tuple[Callable, list, list]:
    """Create the tabs of a model in the current ``gr.Tabs``.

    Return callback, inputs and outputs to show another model.
    """
    with gr.Tab('Identify', id='identify'):
        gr.Markdown(f'# {TITLE}\n{PRIVACY}')
        results = build_identify(identification, opened)
        about = gr.Textbox(label='Model', interactive=False, elem_id='model')
    with gr.Tab(f'For researchers: {EXPLORE}', visible=False) as tab:
        build_explore(results[1], tab)

    def show_model(key):
        model = identification.chosen(key)
        shown = gr.Tab(visible=bool(model and model.can_reduce))
        return [*identification.clear(), model and model.about, shown]

    return show_model, [opened], [*results, about, tab]
