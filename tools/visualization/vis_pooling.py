# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw what attention pooling reads of images, by class where it can."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('vis_pooling')
