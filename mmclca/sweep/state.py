# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How far a sweep has come."""

import statistics
import time
from dataclasses import dataclass, field
from enum import Enum

from .cell import Cell


class Status(Enum):
    """What becomes of a cell."""

    WAITING = 'waiting'
    QUEUED = 'queued'
    RUNNING = 'running'
    ELSEWHERE = 'running elsewhere'
    DONE = 'done'
    FAILED = 'failed'


LEFT = (Status.WAITING, Status.QUEUED, Status.RUNNING, Status.ELSEWHERE)


@dataclass
class State:
    """Cells of a sweep, and how each stands.

    Args:
        cells (list[Cell]): All cells.
        num_jobs (int): Cells that run at a time.
    """

    cells: list[Cell]
    num_jobs: int
    status: dict[Cell, Status] = field(init=False)
    seconds: dict[Cell, float] = field(default_factory=dict)
    started: dict[Cell, float] = field(default_factory=dict)
    errors: dict[Cell, str] = field(default_factory=dict)

    def __post_init__(self):
        self.status = dict.fromkeys(self.cells, Status.WAITING)

    def of(self, *wanted: Status) -> list[Cell]:
        """The cells that stand so, in their order."""
        return [cell for cell in self.cells if self.status[cell] in wanted]

    def start(self, cell: Cell) -> None:
        """Note that a cell runs, and since when."""
        self.status[cell] = Status.RUNNING
        self.started.setdefault(cell, time.monotonic())

    def finish(self, cell: Cell, result: dict) -> None:
        """Note that a cell has a result."""
        self.status[cell] = Status.DONE
        self.seconds[cell] = result['seconds']

    def fail(self, cell: Cell, error: str) -> None:
        """Note that a cell has failed for good, and why."""
        self.status[cell] = Status.FAILED
        self.errors[cell] = error

    def seconds_left(self) -> float | None:
        """Estimate until all is done; None before the first result."""
        if not self.seconds:
            return None
        now = time.monotonic()
        work = sum(
            max(self._expected(cell) - (now - self.started.get(cell, now)), 0)
            for cell in self.of(*LEFT)
        )
        return work / self.num_jobs

    def _expected(self, cell: Cell) -> float:
        """Mean time of finished cells that cost about as much, else of all."""
        alike = [
            seconds
            for done, seconds in self.seconds.items()
            if _cost(done) == _cost(cell)
        ]
        return statistics.mean(alike or self.seconds.values())


def _cost(cell: Cell) -> tuple:
    return cell.dataset, cell.size, cell.backbone, cell.keep_rate
