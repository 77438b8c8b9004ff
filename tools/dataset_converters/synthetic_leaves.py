# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw a data set of leaf cultivars."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('synthetic_leaves')
