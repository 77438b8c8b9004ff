# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run a grid of experiments: ``python tools/sweep.py GRID --jobs 2``.

The same command resumes a stopped sweep; finished runs are skipped.
``--report`` writes tables of the finished runs.
"""

import shlex
import sys
from pathlib import Path

from mmclca.utils.messages import print_safe

from .. import Parser, usage_errors
from ..arguments import SETTINGS, positive
from ..packages import sweep


def parse_args():
    parser = Parser(
        'Run a grid of experiments.', 'Run the same command to resume.'
    )
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
    return parser.parse_args()


def prepare(args):
    """Return folder, grid, configs by run, and results (or None) by run."""
    grid = sweep.grid.read_grid(args.grid)
    root = args.work_dir or Path('work_dirs/sweeps') / args.grid.stem
    configs, root = grid.configs(), root.absolute()
    results = {
        cell: sweep.results.read_result(
            root / f'{cell.name}.json', sweep.results.config_hash(cfg)
        )
        for cell, cfg in configs.items()
    }
    return root, grid, configs, results


def report(root, results):
    """Write result tables."""
    found = list(filter(None, results.values()))
    print_safe(f'Results    {len(found)} of {len(results)} runs complete')
    for path in sweep.report.write_tables(found, root / 'report'):
        print_safe(f'Saved      {path}')


def plan(args, root, configs, keep_checkpoints):
    """Return the executor and the arguments per job."""
    gpus = [0] if args.executor == 'slurm' else sweep.jobs.visible_gpus()
    options = sweep.jobs.job_options(args.executor, args.jobs, gpus)
    options |= args.executor_options
    cpus = options.get('slurm_cpus_per_task', options['cpus_per_task'])
    settings = args.threads or cpus, keep_checkpoints
    executor = sweep.jobs.make_executor(args.executor, root / 'jobs', options)
    return executor, [
        (cell, cfg, root, gpus[n % len(gpus)] if gpus else 0, *settings)
        for n, (cell, cfg) in enumerate(configs.items())
    ]


def main(args):
    with usage_errors():
        root, grid, configs, results = prepare(args)
        if args.report:
            return report(root, results)
        left = {c: cfg for c, cfg in configs.items() if not results[c]}
        sweep.grid.check_inputs(list(left.values()))
        executor, calls = plan(args, root, left, grid.keep_checkpoints)
    # Slurm itself limits the running jobs per array
    slots = sweep.jobs.MAX_ARRAY if args.executor == 'slurm' else args.jobs
    left = sweep.jobs.run_cells(executor, calls, slots)
    for cell, job in left:
        error = job.exception()
        end = f'failed twice: {error}' if error else sweep.run.TAKEN
        print(f'{cell.name}: {end}')
    done = f'{len(configs) - len(left)} of {len(configs)}'
    print_safe(f'Results    {done} runs complete', f'Saved      {root}')
    words = sys.argv[1:] + ['--report'] * (not left)
    print_safe(f'Next       python -m mmclca sweep {shlex.join(words)}')
    return int(bool(left))
