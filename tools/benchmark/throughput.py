# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Speed of models with token reduction beside their FLOPs."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('throughput')
