# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Binding of events of the page, with one queue for all of them."""

QUEUE = 'model'  # parallel requests would slow each other


def bind(event, callback, inputs: list, outputs: list, preprocess=True):
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
