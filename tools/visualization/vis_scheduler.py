# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The curve of a learning rate."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('vis_scheduler')
