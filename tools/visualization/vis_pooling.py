# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw what attention pooling reads of images, by class where it can."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_leaves, add_model_arguments


def parse_args():
    parser = cli.Parser(
        description='Draw a row an image: the image, and its patches as '
        'bright as they count in what is pooled by attention. A map a class '
        'where each has a query (PatchConvNet, AttentionPool), one map with '
        'one query, a row a class layer and a map a head for CaiT'
    )
    parser.add(
        'files',
        'images, a config (path or name; without, the one in the checkpoint) '
        'and weights, in any order',
        nargs='+',
        metavar='IMAGE [CONFIG] CHECKPOINT',
    )
    parser.add(
        '--classes',
        'names or labels of the classes to draw, where each has a query '
        '(default: the three with the highest scores)',
        nargs='+',
        metavar='CLASS',
    )
    add_leaves(parser)
    parser.add('--out', 'picture to write', type=Path, required=True)
    add_model_arguments(parser)
    return parser.parse_args()


main = cli.command('vis_pooling', parse_args)

if __name__ == '__main__':
    cli.run(main)
