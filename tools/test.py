# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Test a checkpoint: ``python tools/test.py CONFIG CHECKPOINT``."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('test')
