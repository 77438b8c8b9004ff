# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw image features by t-SNE."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('vis-tsne')
