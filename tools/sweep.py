# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run a grid of cells: ``python tools/sweep.py GRID --jobs 2``.

What is finished is not run again, so the same command goes on with a sweep
that was stopped. ``--report`` writes tables of what there is.
"""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import Settings


def parse_args():
    parser = cli.Parser(description='Run a grid of cells')
    parser.add_argument('grid', type=Path, help='the grid, a Python file')
    parser.add_argument(
        '--work-dir',
        type=Path,
        help='folder of results and logs (default: work_dirs/sweeps/GRID)',
    )
    parser.add_argument(
        '--executor',
        choices=['local', 'slurm'],
        default='local',
        help='processes of this machine, or an array of Slurm jobs',
    )
    parser.add_argument(
        '--jobs', type=int, default=1, help='cells that run at a time'
    )
    parser.add_argument(
        '--threads',
        type=int,
        help='CPU threads of a cell (default: the cores over --jobs; on '
        'Slurm those of cpus_per_task)',
    )
    parser.add_argument(
        '--executor-options',
        nargs='+',
        action=Settings,
        default={},
        metavar='KEY=VALUE',
        help="submitit's parameters, as slurm_partition=gpu timeout_min=600",
    )
    parser.add_argument(
        '--report', action='store_true', help='write tables; run nothing'
    )
    args = parser.parse_args()
    for name in ('jobs', 'threads'):
        if getattr(args, name) is not None and getattr(args, name) < 1:
            parser.error(f'--{name} must be at least 1')
    return args


def main():
    args = parse_args()
    with cli.plain_errors():  # packages may be missing
        from mmclca.cli.commands import sweep

    return sweep.main(args)


if __name__ == '__main__':
    cli.run(main, go_on='the same command goes on')
