# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run a grid of experiments.

``python tools/sweep.py GRID --jobs 2``

The same command resumes a stopped sweep; finished runs are skipped.
``--report`` writes tables of the finished runs.
"""

import shlex
import sys
from pathlib import Path

from mmclca.utils.messages import print_safe

from ..arguments import SETTINGS, positive
from ..listing import Listing

LISTING = Listing('train and test', 'run a grid of experiments', 'sweeps')


def add_arguments(parser):
    parser.advice = 'Run the same command to resume.'
    parser.add('grid', 'Python file of the grid', type=Path)
    work_dir = 'folder of results and logs (default: work_dirs/sweeps/GRID)'
    parser.add('--work-dir', work_dir, type=Path)
    parser.add(
        '--executor',
        'local processes or a Slurm job array',
        'local',
        choices=['local', 'slurm'],
    )
    parser.add('--jobs', 'parallel runs', 1, type=positive)
    parser.add(
        '--threads',
        'CPU threads per run (default: cores divided by --jobs)',
        type=positive,
    )
    parser.add(
        '--executor-options',
        'submitit parameters, e.g. slurm_partition=gpu timeout_min=600',
        **SETTINGS,
    )
    parser.flag('--report', 'tables of finished runs only')


def read_results(configs, root):
    """Return the results in a folder, or None, by key."""
    from mmclca.sweep.results import config_hash, read_result

    return {
        key: read_result(root / f'{key.name}.json', config_hash(config))
        for key, config in configs.items()
    }


def write_report(results, root):
    """Write tables of the finished runs."""
    from mmclca.sweep.report import write_tables

    finished = [result for result in results.values() if result]
    print_safe(f'Results    {len(finished)} of {len(results)} runs complete')
    for path in write_tables(finished, root / 'report'):
        print_safe(f'Saved      {path}')


def make_executor(args, root, gpus):
    """Return the executor and the CPU threads per run."""
    from mmclca.sweep import jobs

    options = jobs.get_job_options(args.executor, args.jobs, gpus)
    options |= args.executor_options
    cpus = options.get('slurm_cpus_per_task', options['cpus_per_task'])
    executor = jobs.make_executor(args.executor, root / 'jobs', options)
    return executor, args.threads or cpus


def plan(args, root, grid, configs):
    """Return the executor and the tasks of the runs in ``configs``."""
    from mmclca.sweep.execution import Task
    from mmclca.sweep.jobs import list_visible_gpus

    gpus = [0] if args.executor == 'slurm' else list_visible_gpus()
    executor, threads = make_executor(args, root, gpus)
    runs = [run for run in grid.runs if run.key in configs]
    return executor, [
        Task(
            run=run,
            config=configs[run.key],
            root=root,
            gpu=gpus[n % len(gpus)] if gpus else 0,
            threads=threads,
            keep_checkpoints=grid.keep_checkpoints,
        )
        for n, run in enumerate(runs)
    ]


def main(args):
    from mmclca.sweep import inputs, jobs
    from mmclca.sweep.execution import TAKEN
    from mmclca.sweep.grid import read_grid

    grid = read_grid(args.grid)
    root = args.work_dir or Path('work_dirs/sweeps') / args.grid.stem
    root = root.absolute()
    configs = grid.compose_configs()
    results = read_results(configs, root)
    if args.report:
        return write_report(results, root)
    unfinished = {k: v for k, v in configs.items() if not results[k]}
    inputs.check_inputs(list(unfinished.values()))
    executor, tasks = plan(args, root, grid, unfinished)
    # Slurm itself limits the running jobs per array
    slots = jobs.MAX_ARRAY if args.executor == 'slurm' else args.jobs
    failed = jobs.run_all(executor, tasks, slots)
    for task, job in failed:
        error = job.exception()
        outcome = f'failed twice: {error}' if error else TAKEN
        print(f'{task.name}: {outcome}')
    done = f'{len(configs) - len(failed)} of {len(configs)}'
    print_safe(f'Results    {done} runs complete', f'Saved      {root}')
    arguments = sys.argv[1:] + ['--report'] * (not failed)
    print_safe(f'Next       python -m mmclca sweep {shlex.join(arguments)}')
    return int(bool(failed))
