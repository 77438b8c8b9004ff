# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run tasks as submitit jobs, in local processes or on Slurm."""

import math
import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import submitit
import torch
from submitit.helpers import as_completed

from mmclca.errors import Error
from mmclca.utils.messages import print_safe, track

from .execution import DONE, Task, run_one

TRIES = 2
POLL = 1.0  # seconds between job status checks
# submitit waits by the clock, which may go back by hours
NO_WAIT = -math.inf
# Slurm's default limit is 1,001
MAX_ARRAY = 1000


def list_visible_gpus() -> list[int]:
    """GPU numbers in ``CUDA_VISIBLE_DEVICES``, by default all GPUs.

    submitit overwrites the variable in jobs, so jobs select their GPU by
    number. Raises an Error if the variable is not a list of numbers.
    """
    visible = os.environ.get('CUDA_VISIBLE_DEVICES')
    if not visible:
        return list(range(torch.cuda.device_count()))
    if visible == '-1':  # hides all GPUs
        return []
    if not re.fullmatch(r'\d+(,\d+)*', visible):
        raise Error(
            f'CUDA_VISIBLE_DEVICES={visible}: expected GPU numbers, such as '
            '0,1'
        )
    return [int(number) for number in visible.split(',')]


def get_job_options(cluster: str, num_jobs: int, gpus: list[int]) -> dict:
    """Default submitit parameters."""
    if cluster == 'slurm':
        return dict(
            timeout_min=24 * 60,
            gpus_per_node=1,
            cpus_per_task=4,
            slurm_array_parallelism=num_jobs,
        )
    return dict(
        timeout_min=7 * 24 * 60,  # submitit's default is two minutes
        gpus_per_node=max(gpus, default=-1) + 1,  # jobs see GPUs from 0 on
        cpus_per_task=max(os.cpu_count() // num_jobs, 1),
    )


def make_executor(
    cluster: str, folder: Path, options: dict
) -> submitit.AutoExecutor:
    """Make a submitit executor for the cluster 'local' or 'slurm'.

    All nodes must share ``folder``.

    Raises:
        Error: If Slurm is missing or a parameter is unknown.
    """
    try:
        executor = submitit.AutoExecutor(folder, cluster=cluster)
        executor.update_parameters(**options)
    except (AssertionError, NameError, RuntimeError, TypeError) as error:
        raise Error(f'executor {cluster}: {error}') from None
    # the result of an ended process is there, or never will be
    submitit.LocalJob._results_timeout_s = NO_WAIT
    return executor


def in_new_folder(executor: submitit.AutoExecutor) -> submitit.AutoExecutor:
    """Copy an executor, with a new folder for its jobs.

    submitit names files by process number, which other jobs may have had.
    """
    folder = executor.folder / uuid4().hex
    new = submitit.AutoExecutor(folder, cluster=executor.cluster)
    new.parameters.update(executor.parameters)
    new._executor._throttling = NO_WAIT  # type: ignore[attr-defined]
    return new


def run_all(
    executor: submitit.AutoExecutor, tasks: list[Task], slots: int
) -> list[tuple[Task, submitit.Job]]:
    """Run tasks as jobs and repeat failed ones once.

    Args:
        executor (submitit.AutoExecutor): See :func:`make_executor`.
        tasks (list[Task]): The tasks.
        slots (int): Jobs that are submitted at the same time, at most
            ``MAX_ARRAY``.

    Returns:
        list[tuple[Task, submitit.Job]]: Tasks without a result and their last
        jobs.
    """
    unfinished: list[tuple[Task, submitit.Job]] = []
    for _ in range(TRIES):
        unfinished = []
        for start in range(0, len(tasks), MAX_ARRAY):
            part = tasks[start : start + MAX_ARRAY]
            unfinished += _run_once(executor, part, slots)
        tasks = [task for task, _ in unfinished]
    return unfinished


def _run_once(
    executor: submitit.AutoExecutor, tasks: list[Task], slots: int
) -> Iterator[tuple[Task, submitit.Job]]:
    """Run tasks once; yield those without a result and their jobs."""
    with closing(_run_in_slots(executor, tasks, slots)) as ended:
        for task, job in track(ended, 'Runs', len(tasks)):
            outcome = 'failed' if job.exception() else job.result()
            print_safe(f'{task.name}: {outcome}')
            if outcome != DONE:
                yield task, job


def _run_in_slots(
    executor: submitit.AutoExecutor, tasks: list[Task], slots: int
) -> Iterator[tuple[Task, submitit.Job]]:
    """Start jobs, yield each finished job, and finally cancel the others."""
    waiting, jobs = tasks, {}
    try:
        while waiting or jobs:
            free = slots - len(jobs)
            started, waiting = waiting[:free], waiting[free:]
            if started:
                with _stderr_to(executor.folder / 'processes.err'):
                    copy = in_new_folder(executor)
                    new_jobs = copy.map_array(run_one, started)
                jobs |= zip(new_jobs, started, strict=True)
            job = next(as_completed(list(jobs), poll_frequency=POLL))
            yield jobs.pop(job), job
    finally:
        for job in jobs:
            job.cancel()


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Redirect stderr of processes started in this context to a file.

    It receives their own errors, such as tracebacks after Ctrl-C; submitit
    already writes the output of runs to files.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    stderr = os.dup(2)
    try:
        with path.open('ab') as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
