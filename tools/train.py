# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train a model: ``python tools/train.py CONFIG``."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('train')
