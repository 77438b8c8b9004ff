# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Look at what a model is sure of, rightly and wrongly."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('analyze_results')
