# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Generate a synthetic leaf dataset."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('synthetic-leaves')
