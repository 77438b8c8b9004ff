# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the similarity (CKA) of layers of one or two models."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('vis_cka')
