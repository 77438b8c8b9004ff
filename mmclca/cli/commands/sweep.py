# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/sweep.py`` does."""

from pathlib import Path

from rich.console import Console

from mmclca.sweep.checks import check_inputs
from mmclca.sweep.grid import read_grid
from mmclca.sweep.identity import config_hash
from mmclca.sweep.jobs import (
    MAX_ARRAY,
    job_options,
    make_executor,
    run_cells,
    visible_gpus,
)
from mmclca.sweep.report import write_report
from mmclca.sweep.results import read_result
from mmclca.sweep.run import TAKEN

from .. import plain_errors


def prepare(args):
    """Read the grid and the results that there are.

    Returns:
        tuple: The folder of the sweep, the grid, its configs by cell, and
        results or None by cell.
    """
    grid = read_grid(args.grid)
    root = args.work_dir or Path('work_dirs/sweeps') / args.grid.stem
    configs, root = grid.configs(), root.absolute()
    results = {
        cell: read_result(root / f'{cell.name}.json', config_hash(cfg))
        for cell, cfg in configs.items()
    }
    return root, grid, configs, results


def report(root, results, console):
    """Write tables of the results that there are."""
    found = list(filter(None, results.values()))
    console.print(f'{len(found)} of {len(results)} cells have a result')
    for path in write_report(found, root / 'report'):
        console.print(path, soft_wrap=True)


def plan(args, root, configs, keep_checkpoints):
    """What starts the jobs of cells, and what each is called with."""
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
    console = Console()
    with plain_errors():
        root, grid, configs, results = prepare(args)
        if args.report:
            return report(root, results, console)
        left = {c: cfg for c, cfg in configs.items() if not results[c]}
        check_inputs(list(left.values()))
        executor, calls = plan(args, root, left, grid.keep_checkpoints)
    # of an array, Slurm itself lets --jobs run
    slots = MAX_ARRAY if args.executor == 'slurm' else args.jobs
    left = run_cells(executor, calls, slots, console)
    for cell, job in left:
        error = job.exception()
        said = f'failed twice: {error}' if error else TAKEN
        console.print(f'{cell.name}: {said}', markup=False, soft_wrap=True)
    done = f'{len(configs) - len(left)} of {len(configs)} cells are done'
    console.print(f'{done}, in {root}', soft_wrap=True)
    return int(bool(left))
