# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Split a dataset with one folder per class into train and val."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('split-folder')
