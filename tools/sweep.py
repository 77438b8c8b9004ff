# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run an experiment grid."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('sweep')
