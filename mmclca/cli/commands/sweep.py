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


def prepare(args):
    """Return folder, grid, configs by run, and results (or None) by run."""
    from mmclca.sweep.grid import read_grid
    from mmclca.sweep.results import config_hash, read_result

    grid = read_grid(args.grid)
    root = args.work_dir or Path('work_dirs/sweeps') / args.grid.stem
    configs, root = grid.configs(), root.absolute()
    results = {
        cell: read_result(root / f'{cell.name}.json', config_hash(cfg))
        for cell, cfg in configs.items()
    }
    return root, grid, configs, results


def report(root, results):
    """Write result tables."""
    from mmclca.sweep.report import write_tables

    found = list(filter(None, results.values()))
    print_safe(f'Results    {len(found)} of {len(results)} runs complete')
    for path in write_tables(found, root / 'report'):
        print_safe(f'Saved      {path}')


def plan(args, root, configs, keep_checkpoints):
    """Return the executor and the arguments per job."""
    from mmclca.sweep.jobs import job_options, make_executor, visible_gpus

    gpus = [0] if args.executor == 'slurm' else visible_gpus()
    options = job_options(args.executor, args.jobs, gpus)
    options |= args.executor_options
    cpus = options.get('slurm_cpus_per_task', options['cpus_per_task'])
    settings = args.threads or cpus, keep_checkpoints
    executor = make_executor(args.executor, root / 'jobs', options)
    return executor, [
        (cell, cfg, root, gpus[n % len(gpus)] if gpus else 0, *settings)
        for n, (cell, cfg) in enumerate(configs.items())
    ]


def main(args):
    from mmclca.sweep.grid import check_inputs
    from mmclca.sweep.jobs import MAX_ARRAY, run_cells
    from mmclca.sweep.run import TAKEN

    root, grid, configs, results = prepare(args)
    if args.report:
        return report(root, results)
    left = {c: cfg for c, cfg in configs.items() if not results[c]}
    check_inputs(list(left.values()))
    executor, calls = plan(args, root, left, grid.keep_checkpoints)
    # Slurm itself limits the running jobs per array
    slots = MAX_ARRAY if args.executor == 'slurm' else args.jobs
    left = run_cells(executor, calls, slots)
    for cell, job in left:
        error = job.exception()
        end = f'failed twice: {error}' if error else TAKEN
        print(f'{cell.name}: {end}')
    done = f'{len(configs) - len(left)} of {len(configs)}'
    print_safe(f'Results    {done} runs complete', f'Saved      {root}')
    words = sys.argv[1:] + ['--report'] * (not left)
    print_safe(f'Next       python -m mmclca sweep {shlex.join(words)}')
    return int(bool(left))
