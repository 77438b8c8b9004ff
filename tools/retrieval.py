# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find similar images in a gallery."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('retrieval')
