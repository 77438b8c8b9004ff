# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Look at a data set: ``python tools/visualization/browse_dataset.py
CONFIG``."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('browse_dataset')
