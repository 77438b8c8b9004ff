# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""submitit's ways to start processes, set up for the cells of a sweep."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import submitit
import torch

# of a local job, which would else end after five
MINUTES = 7 * 24 * 60
LOCAL_OPTIONS = ('timeout_min', 'setup', 'stderr_to_stdout')
SLURM_MINUTES = 24 * 60
SLURM_CPUS = 4
# Slurm's default limit is 1,001
MAX_ARRAY = 1000


def visible_gpus() -> list[int]:
    """Numbers of the GPUs to use, for submitit hides the others from jobs.

    Raises:
        ValueError: If ``CUDA_VISIBLE_DEVICES`` names some otherwise than by
            numbers.
    """
    named = os.environ.get('CUDA_VISIBLE_DEVICES', '')
    if not named:
        return list(range(torch.cuda.device_count()))
    if named == '-1':  # a way to hide them all
        return []
    if not all(name.strip().isdigit() for name in named.split(',')):
        raise ValueError(
            f'CUDA_VISIBLE_DEVICES={named}: name GPUs by numbers, as 0,1'
        )
    return [int(name) for name in named.split(',')]


class LocalExecutor(submitit.LocalExecutor):
    """Processes whose own tracebacks, as that of Ctrl-C, go to a file.

    What the cells write goes to files already.
    """

    def _submit_command(self, command: str) -> submitit.Job:
        self.folder.mkdir(parents=True, exist_ok=True)
        with _stderr_to(self.folder / 'processes.err'):
            return super()._submit_command(command)


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Let processes that start meanwhile write their errors to a file."""
    own = os.dup(2)
    try:
        with path.open('ab') as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)


def local_executor(
    folder: Path, options: dict, gpus: list[int]
) -> submitit.LocalExecutor:
    """Processes of this machine.

    Args:
        folder (Path): For submitit's files.
        options (dict): Of ``LOCAL_OPTIONS``.
        gpus (list[int]): GPUs that jobs see.

    Raises:
        ValueError: If an option is none of these.
    """
    unknown = sorted({*options} - {*LOCAL_OPTIONS})
    if unknown:
        raise ValueError(
            f'--executor-options: {", ".join(unknown)} is nothing that '
            f'processes here have; there are {", ".join(LOCAL_OPTIONS)}'
        )
    executor = LocalExecutor(folder)
    settings = dict(
        timeout_min=MINUTES, gpus_per_node=len(gpus), visible_gpus=gpus
    )
    executor.update_parameters(**{**settings, **options})
    return executor


def slurm_executor(
    folder: Path, options: dict, num_jobs: int
) -> submitit.AutoExecutor:
    """Jobs of Slurm, with a GPU each unless ``options`` say otherwise.

    Args:
        folder (Path): For submitit's files, seen by all nodes.
        options (dict): submitit's parameters.
        num_jobs (int): Jobs that run at a time.

    Raises:
        ValueError: If there is no Slurm here, or no such option.
    """
    settings = dict(
        timeout_min=SLURM_MINUTES,
        gpus_per_node=1,
        cpus_per_task=SLURM_CPUS,
        slurm_array_parallelism=num_jobs,
    )
    try:
        executor = submitit.AutoExecutor(folder, cluster='slurm')
        executor.update_parameters(**{**settings, **options})
    except (AssertionError, NameError, RuntimeError, TypeError) as error:
        raise ValueError(f'--executor slurm: {error}') from None
    return executor


def slurm_cpus(options: dict) -> int:
    """CPUs of a job, which submitit knows by two names.

    Args:
        options (dict): submitit's parameters.
    """
    named = ('slurm_cpus_per_task', 'cpus_per_task')
    return next((options[n] for n in named if n in options), SLURM_CPUS)
