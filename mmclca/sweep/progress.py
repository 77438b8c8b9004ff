# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Shows how a sweep goes on: a live table, or lines where that cannot be."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.live import Live
from rich.table import Table

from .state import State, Status


@contextmanager
def progress(console: Console) -> Iterator[Callable[[State], None]]:
    """Show a sweep while it runs.

    Args:
        console (Console): On a terminal a table is renewed in place; else
            each change is a line.

    Yields:
        Callable: To be called with the state again and again.
    """
    if not console.is_terminal:
        yield Lines(console)
        return
    with Live(console=console, refresh_per_second=2) as live:
        yield lambda state: live.update(table(state))


class Lines:
    """Prints what has changed since the last call.

    Args:
        console (Console): Where to print.
    """

    def __init__(self, console: Console):
        self.console = console
        self.before = {}

    def __call__(self, state: State) -> None:
        changed = {
            cell: status
            for cell, status in state.status.items()
            if self.before.get(cell, Status.WAITING) != status
        }
        self.before = dict(state.status)
        for cell, status in changed.items():
            self.console.print(
                f'{cell.name}: {status.value} ({summary(state)})',
                highlight=False,
                soft_wrap=True,
            )


def table(state: State) -> Table:
    """Counts, the cells that run, and the time left.

    Args:
        state (State): The state of a sweep.
    """
    shown = Table(title=summary(state), title_justify='left')
    shown.add_column('cell')
    shown.add_column('status')
    shown.add_column('for', justify='right')
    for cell in state.of(
        Status.RUNNING, Status.QUEUED, Status.ELSEWHERE, Status.FAILED
    ):
        shown.add_row(cell.name, state.status[cell].value, _age(state, cell))
    return shown


def summary(state: State) -> str:
    """How many cells stand how, and an estimate of the time left."""
    counts = [
        f'{len(state.of(status))} {status.value}'
        for status in Status
        if state.of(status)
    ]
    left = state.seconds_left()
    if left:
        counts.append(f'about {duration(left)} left')
    return ', '.join(counts)


def _age(state: State, cell) -> str:
    if state.status[cell] is not Status.RUNNING:
        return ''
    return duration(time.monotonic() - state.started[cell])


def duration(seconds: float) -> str:
    """Hours, minutes and seconds."""
    return str(timedelta(seconds=round(seconds)))
