# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw cross-patch matrices in a ResMLP by layer."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('vis-cross-patch')
