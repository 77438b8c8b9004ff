# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""From nothing to a trained, tested and drawn CLCA ViT, on a CPU.

Draws leaves of eight cultivars, trains a small ViT that drops half of its
tokens three times, tests the best checkpoint, and ends with a table. Every
command is printed, and can be run by hand from the folder of the project.
"""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('demo')
