# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What becomes of cells whose jobs end well, badly, or are another's."""

import json
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
from mmengine.config import Config
from rich.console import Console
from sweep_results import CELL, result_of

from mmclca.sweep import queue
from mmclca.sweep.claim import claim
from mmclca.sweep.launcher import Launcher
from mmclca.sweep.progress import duration, progress, summary, table
from mmclca.sweep.queue import Queue
from mmclca.sweep.run import DONE, TAKEN
from mmclca.sweep.state import State, Status
from mmclca.utils.atomic_write import replace_text

CELLS = [replace(CELL, seed=seed) for seed in range(5)]


class Job:
    """A job that looks busy once and then has ended as foreseen."""

    def __init__(self, ending):
        self.ending = ending
        self.state = 'RUNNING'
        self.looks = 0
        self.cancelled = False
        self.paths = SimpleNamespace(stderr='the.log')

    def done(self):
        self.looks += 1
        return self.looks > 1

    def exception(self):
        return None if isinstance(self.ending, str) else self.ending

    def result(self):
        return self.ending

    def stderr(self):
        return '\n'.join(f'line {n}' for n in range(99)) + '\nno memory\n'

    def cancel(self):
        self.cancelled = True


def finish(cell, root, digest):
    """Leave a result as if a cell had run."""
    text = json.dumps(result_of(cell, config_hash=digest))
    replace_text(root / f'{cell.name}.json', text)


class Executor:
    """Runs nothing; what ``endings`` says of a cell happens."""

    def __init__(self, endings):
        self.endings = endings
        self.submitted = []
        self.gpus = []
        self.batches = 0

    @contextmanager
    def batch(self):
        self.batches += 1
        yield

    def submit(self, _, cell, root, digest, gpu, *__):
        self.submitted.append(cell)
        self.gpus.append(gpu)
        ending = self.endings(cell, self.submitted.count(cell))
        if ending == DONE:
            finish(cell, root, digest)
        return Job(ending)


@pytest.fixture
def start(tmp_path, monkeypatch):
    """A queue of CELLS whose jobs end as a function says."""
    monkeypatch.setattr(queue, 'POLL', 0)
    monkeypatch.setattr(queue, 'POLL_ELSEWHERE', 0)

    def start(endings, slots=2, num_gpus=0):
        executor = Executor(endings)
        configs = dict.fromkeys(CELLS, Config(dict(a=1)))
        launcher = Launcher(
            executor, tmp_path, configs, slots, num_gpus=num_gpus
        )
        state = State(CELLS, slots)
        return Queue(state, launcher), state, executor

    return start


def test_all_cells_are_run_a_few_at_a_time(start, tmp_path):
    waiting, state, executor = start(lambda *_: DONE)
    busy = []
    waiting.run(lambda state: busy.append(len(waiting.jobs)))
    assert executor.submitted == CELLS
    assert max(busy) == 2
    assert state.of(Status.DONE) == CELLS
    for cell, digest in waiting.launcher.digests.items():
        config = tmp_path / cell.name / digest / 'config.py'
        assert 'a = 1' in config.read_text()


def test_a_cluster_gets_one_array(start):
    waiting, _, executor = start(lambda *_: DONE, slots=len(CELLS))
    waiting.run(lambda state: None)
    assert executor.batches == 1


def test_what_is_finished_is_not_run(start, tmp_path):
    waiting, state, executor = start(lambda *_: DONE)
    finish(CELLS[2], tmp_path, waiting.launcher.digests[CELLS[2]])
    assert waiting.skip_finished() == CELLS[:2] + CELLS[3:]
    waiting.run(lambda state: None)
    assert CELLS[2] not in executor.submitted
    assert len(state.of(Status.DONE)) == 5


def test_a_failure_is_tried_once_more(start):
    broken = RuntimeError('x')
    waiting, state, executor = start(
        lambda cell, time: broken if cell.seed == 1 and time == 1 else DONE
    )
    waiting.run(lambda state: None)
    assert executor.submitted.count(CELLS[1]) == 2
    assert len(executor.submitted) == 6
    assert state.of(Status.DONE) == CELLS


def test_two_failures_are_told_with_the_end_of_the_log(start):
    waiting, state, executor = start(
        lambda cell, _: RuntimeError('x') if cell.seed == 1 else DONE
    )
    waiting.run(lambda state: None)
    assert executor.submitted.count(CELLS[1]) == 2
    assert state.of(Status.FAILED) == [CELLS[1]]
    assert len(state.of(Status.DONE)) == 4
    lines = state.errors[CELLS[1]].splitlines()
    assert lines[-2:] == ['no memory', '(all of it: the.log)']
    assert 'line 98' in lines and 'line 0' not in lines


def test_a_job_that_says_done_but_left_nothing_has_failed(start, tmp_path):
    waiting, state, _ = start(lambda cell, _: DONE)
    waiting.launcher.executor.submit = lambda *_: Job(DONE)
    waiting.run(lambda state: None)
    assert state.of(Status.FAILED) == CELLS


def test_a_cell_of_another_sweep_is_waited_for(start, tmp_path):
    waiting, state, executor = start(
        lambda cell, _: TAKEN if cell.seed == 3 else DONE
    )
    other = claim(tmp_path / CELLS[3].name)
    assert other.__enter__()
    looks = []

    def show(state):
        looks.append(state.status[CELLS[3]])
        if len(looks) == 20:  # the other one ends
            digest = waiting.launcher.digests[CELLS[3]]
            finish(CELLS[3], tmp_path, digest)
            other.__exit__(None, None, None)

    waiting.run(show)
    assert Status.ELSEWHERE in looks
    assert executor.submitted.count(CELLS[3]) <= 1
    assert state.of(Status.DONE) == CELLS


def test_a_cell_whose_other_sweep_dies_is_run_here(start, tmp_path):
    waiting, state, executor = start(lambda *_: DONE)
    other = claim(tmp_path / CELLS[0].name)
    other.__enter__()
    assert waiting.skip_finished() == CELLS
    assert state.status[CELLS[0]] is Status.ELSEWHERE
    other.__exit__(None, None, None)
    waiting.run(lambda state: None)
    assert CELLS[0] in executor.submitted
    assert state.of(Status.DONE) == CELLS


def test_a_result_of_other_settings_is_no_success(start, tmp_path):
    waiting, state, executor = start(lambda *_: DONE)
    finish(CELLS[2], tmp_path, '0' * 16)
    waiting.run(lambda state: None)
    assert state.of(Status.FAILED) == [CELLS[2]]
    assert 'is of other settings' in state.errors[CELLS[2]]
    assert CELLS[2] not in executor.submitted


def test_cells_are_spread_over_the_gpus(start):
    waiting, _, executor = start(lambda *_: DONE, slots=4, num_gpus=2)
    waiting.run(lambda state: None)
    assert executor.gpus[:4] == [0, 1, 0, 1]


def test_stopping_the_sweep_stops_its_jobs(start):
    waiting, _, _ = start(lambda *_: DONE)

    def stop(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        waiting.run(stop)
    assert len(waiting.jobs) == 2
    assert all(job.cancelled for job in waiting.jobs.values())


def test_the_time_left_is_that_of_cells_that_cost_as_much():
    cells = [*CELLS, replace(CELL, keep_rate=1.0)]
    state = State(cells, num_jobs=2)
    assert state.seconds_left() is None
    state.finish(cells[0], result_of(seconds=100.0))
    state.finish(cells[1], result_of(seconds=200.0))
    assert state.seconds_left() == (3 * 150 + 150) / 2
    state.finish(cells[5], result_of(seconds=900.0))
    assert state.seconds_left() == 3 * 150 / 2
    state.start(cells[2])
    state.started[cells[2]] -= 60
    assert state.seconds_left() == pytest.approx((90 + 2 * 150) / 2, abs=1)
    assert '2 waiting, 1 running, 3 done, about 0:03:15 left' in summary(state)


def test_progress_on_a_terminal_and_elsewhere(capsys):
    state = State(CELLS, 2)
    console = Console(width=100, force_terminal=True)
    with progress(console) as show:
        state.start(CELLS[0])
        state.fail(CELLS[1], 'x')
        show(state)
    written = capsys.readouterr().out
    assert CELLS[0].name in written and 'failed' in written
    assert CELLS[2].name not in written
    assert table(state).row_count == 2
    with progress(Console(width=40, force_terminal=False)) as show:
        show(state)
        show(state)
        state.finish(CELLS[0], result_of())
        show(state)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[2].startswith(f'{CELLS[0].name}: done (3 waiting, 1 done')
    assert duration(3725.4) == '1:02:05'
