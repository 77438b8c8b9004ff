# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Split your own images, a folder a class, into training and validation."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('split_folder')
