# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Count GMACs, parameters and tokens."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('get-flops')
