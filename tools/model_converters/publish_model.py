# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write a checkpoint with weights, config and class names only."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('publish-model')
