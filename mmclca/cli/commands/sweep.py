# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/sweep.py`` does."""

import os
from pathlib import Path

from rich.console import Console

from mmclca.sweep.checks import check_inputs, check_results
from mmclca.sweep.executors import (
    MAX_ARRAY,
    local_executor,
    slurm_cpus,
    slurm_executor,
    visible_gpus,
)
from mmclca.sweep.grid import read_grid
from mmclca.sweep.launcher import Launcher
from mmclca.sweep.progress import progress
from mmclca.sweep.queue import Queue
from mmclca.sweep.report import write_report
from mmclca.sweep.results import read_result
from mmclca.sweep.state import State, Status

from .. import plain_errors


def report(configs, root, console):
    """Write tables of the results that there are."""
    found = [read_result(root / f'{cell.name}.json') for cell in configs]
    results = [result for result in found if result is not None]
    console.print(f'{len(results)} of {len(configs)} cells have a result')
    for path in write_report(results, root / 'report'):
        console.print(path, soft_wrap=True)


def make_launcher(args, root, configs, keep_checkpoints):
    """What starts cells in the way that was asked for."""
    shared = dict(
        root=root, configs=configs, keep_checkpoints=keep_checkpoints
    )
    options = args.executor_options
    if args.executor == 'slurm':
        return Launcher(
            slurm_executor(root / 'jobs', options, args.jobs),
            # Slurm lets --jobs of them run
            slots=min(len(configs), MAX_ARRAY),
            threads=args.threads or slurm_cpus(options),
            **shared,
        )
    gpus = visible_gpus()
    return Launcher(
        local_executor(root / 'jobs', options, gpus),
        slots=args.jobs,
        threads=args.threads or max(os.cpu_count() // args.jobs, 1),
        num_gpus=len(gpus),
        **shared,
    )


def show_failures(state, console):
    for cell in state.of(Status.FAILED):
        console.print(f'\n{cell.name} failed twice:', style='bold')
        console.print(state.errors[cell], markup=False, soft_wrap=True)


def run(state, queue, console):
    """Run what has no result; say how it went. True where all is done."""
    with progress(console) as show:
        queue.run(show)
    show_failures(state, console)
    done, cells = len(state.of(Status.DONE)), len(state.cells)
    console.print(
        f'{done} of {cells} cells are done, in {queue.launcher.root}',
        soft_wrap=True,
    )
    return done == cells


def prepare(args, console):
    """Read and check all that was asked for; None after a report."""
    grid = read_grid(args.grid)
    root = args.work_dir or Path('work_dirs/sweeps') / args.grid.stem
    root = root.absolute()
    configs = grid.configs()
    check_results(root, configs)
    if args.report:
        report(configs, root, console)
        return None
    state = State(list(configs), args.jobs)
    launcher = make_launcher(args, root, configs, grid.keep_checkpoints)
    queue = Queue(state, launcher)
    check_inputs({cell: configs[cell] for cell in queue.skip_finished()})
    return state, queue


def main(args):
    console = Console()
    with plain_errors():
        prepared = prepare(args, console)
    return int(not run(*prepared, console)) if prepared else 0
