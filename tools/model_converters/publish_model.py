# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Make a checkpoint small and safe to hand on."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('publish_model')
