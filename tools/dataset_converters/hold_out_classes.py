# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Hold classes out of a data set, to try what becomes of unknown ones."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('hold_out_classes')
