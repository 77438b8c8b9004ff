# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Show dataset images after each transform."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('browse-dataset')
