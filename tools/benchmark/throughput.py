# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How fast models with token reduction are, and what their FLOPs promise."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('throughput')
