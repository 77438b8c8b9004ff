# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw how the patches of a ResMLP communicate: its matrices, by layer."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_model_arguments, positive


def parse_args():
    parser = cli.Parser(
        description='Draw rows of the matrices across patches of a ResMLP as '
        'maps of the patches that are read, and how sparse its matrices are '
        'in each layer'
    )
    parser.add(
        'files',
        'a config (path or name; without, the one in the checkpoint) and '
        'weights',
        nargs='+',
        metavar='[CONFIG] CHECKPOINT',
    )
    parser.add('--out', 'picture to write', type=Path, required=True)
    parser.add(
        '--layers',
        'layers, from 0, whose rows are drawn (default: all)',
        nargs='+',
        type=int,
        metavar='N',
    )
    parser.add(
        '--rows',
        'draw the rows of N x N patches around the centre',
        6,
        type=positive,
        metavar='N',
    )
    add_model_arguments(parser)
    return parser.parse_args()


main = cli.command('vis_cross_patch', parse_args)

if __name__ == '__main__':
    cli.run(main)
