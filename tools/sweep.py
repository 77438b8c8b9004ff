# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run a grid of cells: ``python tools/sweep.py GRID --jobs 2``.

What is finished is not run again, so the same command goes on with a sweep
that was stopped. ``--report`` writes tables of what there is.
"""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import SETTINGS, positive


def parse_args():
    parser = cli.Parser(description='Run a grid of cells')
    parser.add('grid', 'the grid, a Python file', type=Path)
    parser.add(
        '--work-dir',
        'folder of results and logs (default: work_dirs/sweeps/GRID)',
        type=Path,
    )
    parser.add(
        '--executor',
        'processes of this machine, or an array of Slurm jobs',
        'local',
        choices=['local', 'slurm'],
    )
    parser.add('--jobs', 'cells that run at a time', 1, type=positive)
    parser.add(
        '--threads',
        'CPU threads of a cell (default: the cores over --jobs; on Slurm '
        'those of cpus_per_task)',
        type=positive,
    )
    parser.add(
        '--executor-options',
        "submitit's parameters, as slurm_partition=gpu timeout_min=600",
        **SETTINGS,
    )
    parser.flag('--report', 'write tables; run nothing')
    return parser.parse_args()


main = cli.command('sweep', parse_args)

if __name__ == '__main__':
    cli.run(main, go_on='the same command goes on')
