# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw which classes are taken for each other, with images side by side."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('vis_confusions')
