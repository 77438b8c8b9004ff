# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Runs the cells of a sweep through submitit until none is left."""

import time
from collections.abc import Callable

import submitit

from .cell import Cell
from .claim import is_claimed
from .launcher import Launcher
from .results import OTHERWISE, read_result
from .run import DONE
from .state import LEFT, State, Status

LOG_LINES = 8
# seconds between looks at jobs, and at cells that other processes run
POLL, POLL_ELSEWHERE = 1.0, 20.0


class Queue:
    """Cells on their way through an executor.

    A cell that has a result is not run; one that another sweep runs is waited
    for; one that fails is tried once more.

    Args:
        state (State): The cells and how they stand; brought up to date.
        launcher (Launcher): Starts them.
    """

    def __init__(self, state: State, launcher: Launcher):
        self.state = state
        self.launcher = launcher
        self.jobs = {}
        self.tried_again = set()
        self.next_look = 0.0

    def skip_finished(self) -> list[Cell]:
        """Note the cells that have a result; return the others."""
        for cell in self.state.cells:
            self._look_at(cell)
        return self.state.of(*LEFT)

    def run(self, show: Callable[[State], None]) -> None:
        """Run all cells.

        Args:
            show (Callable): Called with the state after each look.
        """
        try:
            while self.state.of(*LEFT):
                self._collect()
                self._look_elsewhere()
                self._launch()
                show(self.state)
                time.sleep(POLL)
        except BaseException:
            # mostly the user, who wants the machine back
            for job in self.jobs.values():
                job.cancel()
            raise

    def _collect(self) -> None:
        for cell, job in list(self.jobs.items()):
            if job.done():
                del self.jobs[cell]
                self.launcher.release(cell)
                self._settle(cell, job)
            elif job.state == 'RUNNING':
                self.state.start(cell)

    def _settle(self, cell: Cell, job: submitit.Job) -> None:
        """Decide what becomes of a cell whose job has ended."""
        error = job.exception()
        if self._has_result(cell):
            return
        if error is None and job.result() != DONE:
            self.state.status[cell] = Status.ELSEWHERE
        elif cell not in self.tried_again:
            self.tried_again.add(cell)
            self.state.status[cell] = Status.WAITING
        else:
            self.state.fail(cell, _last_lines(job))

    def _look_elsewhere(self) -> None:
        """See how cells stand that this sweep does not run."""
        if time.monotonic() < self.next_look:
            return
        self.next_look = time.monotonic() + POLL_ELSEWHERE
        for cell in self.state.of(Status.WAITING, Status.ELSEWHERE):
            self._look_at(cell)

    def _look_at(self, cell: Cell) -> None:
        if not self._has_result(cell):
            claimed = is_claimed(self.launcher.root / cell.name)
            status = Status.ELSEWHERE if claimed else Status.WAITING
            self.state.status[cell] = status

    def _has_result(self, cell: Cell) -> bool:
        """Whether a cell has a result, which settles it."""
        path = self.launcher.root / f'{cell.name}.json'
        result = read_result(path)
        if result is None:
            return False
        if result['config_hash'] == self.launcher.digests[cell]:
            self.state.finish(cell, result)
        else:  # of a sweep that began meanwhile
            self.state.fail(cell, f'{path} is of other settings. {OTHERWISE}')
        return True

    def _launch(self) -> None:
        free = self.launcher.slots - len(self.jobs)
        if cells := self.state.of(Status.WAITING)[:free]:
            self.jobs.update(self.launcher.launch(cells))
            self.state.status.update(dict.fromkeys(cells, Status.QUEUED))


def _last_lines(job: submitit.Job) -> str:
    """The end of a job's log, and where the whole is."""
    text = job.stderr() or job.stdout() or 'the job left no log'
    lines = text.rstrip().splitlines()[-LOG_LINES:]
    return '\n'.join([*lines, f'(all of it: {job.paths.stderr})'])
