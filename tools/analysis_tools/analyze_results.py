# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Save the most confident correct and wrong predictions as pictures."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('analyze-results')
