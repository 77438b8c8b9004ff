# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A config with all that it inherits."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('print_config')
