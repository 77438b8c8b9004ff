# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit a linear classifier on frozen features."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('probe')
