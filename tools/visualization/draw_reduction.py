# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the remaining patches after each stage."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('draw-reduction')
