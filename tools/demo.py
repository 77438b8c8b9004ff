# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train, test and visualize a CLCA ViT on synthetic leaves, on a CPU."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('demo')
