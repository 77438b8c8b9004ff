# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw what a masked autoencoder makes of images that it sees a part of."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('vis_reconstruction')
