# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compare predictions and tokens between models."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('vis-agreement')
