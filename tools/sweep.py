# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run a grid of cells: ``python tools/sweep.py GRID --jobs 2``.

What is finished is not run again, so the same command goes on with a sweep
that was stopped. ``--report`` writes tables of what there is.
"""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('sweep')
