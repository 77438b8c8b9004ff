# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Shows how a sweep goes on: a live table, or lines where that cannot be."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.live import Live
from rich.table import Column, Table

from .state import State, Status

# cells of the table
SHOWN = (Status.RUNNING, Status.QUEUED, Status.ELSEWHERE, Status.FAILED)


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
        yield _lines(console)
        return
    with Live(console=console, refresh_per_second=2) as live:
        yield lambda state: live.update(table(state))


def _lines(console: Console) -> Callable[[State], None]:
    """Print what has changed since the last call."""
    before = {}

    def show(state: State) -> None:
        for cell, status in state.status.items():
            if before.get(cell, Status.WAITING) is not status:
                line = f'{cell.name}: {status.value} ({summary(state)})'
                console.print(line, highlight=False, soft_wrap=True)
        before.update(state.status)

    return show


def table(state: State) -> Table:
    """Counts, the cells that run, and the time left.

    Args:
        state (State): The state of a sweep.
    """
    age = Column('for', justify='right')
    title = summary(state)
    shown = Table('cell', 'status', age, title=title, title_justify='left')
    now = time.monotonic()
    for cell in state.of(*SHOWN):
        status = state.status[cell]
        runs = status is Status.RUNNING
        age = duration(now - state.started[cell]) if runs else ''
        shown.add_row(cell.name, status.value, age)
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


def duration(seconds: float) -> str:
    """Hours, minutes and seconds."""
    return str(timedelta(seconds=round(seconds)))
