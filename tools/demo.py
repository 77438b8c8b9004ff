# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""From nothing to a trained, tested and drawn CLCA ViT, on a CPU."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('demo')
