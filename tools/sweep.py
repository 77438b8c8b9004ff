# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run a grid of experiments."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('sweep')
