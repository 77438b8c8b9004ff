# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw how much alike the layers of one model, or of two, are (CKA)."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('vis_cka')
