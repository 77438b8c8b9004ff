# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Event binding, with one queue for all events."""

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
