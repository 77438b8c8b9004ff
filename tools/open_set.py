# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Choose the score threshold that flags unknown classes."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('open-set')
