# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Choose the score below which an image is of no known class."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('open_set')
