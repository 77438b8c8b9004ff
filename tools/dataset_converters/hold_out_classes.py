# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Hold out classes as unknown classes."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('hold-out-classes')
