# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The start of a training or a test, where settings and files are wrong."""

from collections.abc import Iterator
from contextlib import contextmanager

from mmengine.hooks import Hook
from mmengine.runner import Runner

from .mistakes import WRONG_INPUT, mistake


class StartedHook(Hook):
    """Notes that data and model are built and weights loaded."""

    priority = 'LOWEST'

    def __init__(self):
        self.started = False

    def before_train(self, runner):
        """Data, model and weights are ready."""
        self.started = True

    before_test = before_train


@contextmanager
def starting(source, runner: Runner) -> Iterator[None]:
    """Raise a ``Mistake`` where a run cannot start.

    What is raised after that is an error of the program, and keeps its
    traceback.

    Args:
        source (str | Path): What the line begins with.
        runner (Runner): It is run in this context.
    """
    hook = StartedHook()
    runner.register_hook(hook)
    try:
        yield
    except WRONG_INPUT as error:
        if hook.started:
            raise
        raise mistake(source, error) from error
