# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Print a config with its inherited settings."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('print-config')
