# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compute the confusion matrix on the test set."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('confusion-matrix')
