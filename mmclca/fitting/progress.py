# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""One progress bar with the time left."""

from typing import TextIO

from mmengine.hooks import Hook
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)


class BarHook(Hook):
    """Draws on a terminal how far a training is, and the time left.

    Args:
        screen (TextIO): Where it is drawn.
        description (str): What is trained, in a word or two.
    """

    priority = 'LOWEST'

    def __init__(self, screen: TextIO, description: str):
        console = Console(file=screen)
        self.description = description
        self.bar = Progress(
            TextColumn('{task.description}'),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    def before_train(self, runner) -> None:
        """Begin with what an earlier run has done."""
        self.task = self.bar.add_task(
            self.description, total=runner.max_iters, completed=runner.iter
        )
        self.bar.start()

    def after_train_iter(self, runner, *_, **__) -> None:
        """Move on by a step."""
        self.bar.advance(self.task)

    def after_run(self, runner) -> None:
        """Remove it."""
        self.bar.stop()
