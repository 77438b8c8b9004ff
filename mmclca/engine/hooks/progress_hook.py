# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Training progress on the screen."""

import time
from collections.abc import Callable

from mmengine.hooks import Hook

from mmclca.utils.messages import Bar


class ProgressHook(Hook):
    """Show training progress and the remaining time.

    The remaining time is printed once, after the second epoch: the first
    epoch also reads the photos.

    Args:
        show (Callable): Prints a line.
        title (str): Title of the progress bar.
        later (int): Steps in a subsequent training.
    """

    priority = 'LOWEST'

    def __init__(self, show: Callable[[str], None], title: str, later: int):
        self.show, self.later, self.ends = show, later, []
        self.title, self.bar = title, Bar()

    def before_train(self, runner) -> None:
        """Start at the step of an earlier run."""
        done = dict(total=runner.max_iters, completed=runner.iter)
        self.task = self.bar.add_task(self.title, **done)
        self.bar.start()

    def after_train_iter(self, *_, **__) -> None:
        """Advance by one step."""
        self.bar.advance(self.task)

    def after_train_epoch(self, runner) -> None:
        """Print the remaining time after the second epoch."""
        self.ends.append((time.perf_counter(), runner.iter))
        if len(self.ends) == 2:
            (began, first), (now, done) = self.ends
            left = runner.max_iters - done + self.later
            seconds = (now - began) / (done - first) * left
            self.bar.stop()  # the line would be appended to the bar
            self.show(f'Training   about {seconds / 60:.1f} min left')
            self.bar.start()

    def after_run(self, runner) -> None:
        """Remove the bar."""
        self.bar.stop()
