# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a model costs: ``python tools/analysis_tools/get_flops.py CONFIG``."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('get_flops')
