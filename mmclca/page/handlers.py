# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Event handlers of the page: their binding, queue and errors."""

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from html import escape
from inspect import isgeneratorfunction

import gradio as gr

from mmclca.errors import is_wrong_input

from .language import translate
from .problems import describe_as_bug, describe_bug, describe_problem

QUEUE = 'model'  # parallel requests would slow each other


def bind(event, handler: Callable, inputs: list, outputs: list, **options):
    """Bind an event to a handler returning new values by component.

    A bug in the handler is shown as such, see :func:`report_bugs`. Texts are
    in the language of the visitor.
    """
    return event(
        translate(report_bugs(handler)),
        inputs,
        outputs,
        api_visibility='private',
        **options,
    )


def bind_model(
    event,
    handler: Callable,
    inputs: list,
    outputs: list,
    preprocess: bool = True,
):
    """Bind an event to a handler running a model.

    All share a queue; the last event wins.
    """
    return bind(
        event,
        handler,
        inputs,
        outputs,
        preprocess=preprocess,
        concurrency_id=QUEUE,
        concurrency_limit=1,
        trigger_mode='always_last',
        show_progress='minimal',
    )


def report_bugs(handler: Callable) -> Callable:
    """Make a handler show wrong input in one line, and other errors as bugs.

    The visitor is asked to report a bug; its traceback goes to standard error.
    """

    @wraps(handler)
    def call(*values):
        with _reported():
            return handler(*values)

    @wraps(handler)
    def iterate(*values):
        with _reported():
            yield from handler(*values)

    return iterate if isgeneratorfunction(handler) else call


@contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if is_wrong_input(error):
            raise _make_error(describe_problem(error)) from error
        traceback.print_exc()
        raise _make_error(describe_as_bug(describe_bug(error))) from error


def _make_error(message: str) -> gr.Error:
    """Return an error for Gradio to show, without a further traceback."""
    return gr.Error(escape(message), duration=None, print_exception=False)


@contextmanager
def shown_problems() -> Iterator[None]:
    """Show wrong input in the context as a warning on the page."""
    try:
        yield
    except Exception as error:
        if not is_wrong_input(error):
            raise
        gr.Warning(escape(describe_problem(error)), duration=30)
