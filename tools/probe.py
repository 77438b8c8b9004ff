# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit the last layer of a frozen model to images, in seconds."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('probe')
