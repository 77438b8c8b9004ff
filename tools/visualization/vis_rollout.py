# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the attention rollout of images: what of them reaches the last CLS."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_leaves, add_model_arguments


def parse_args():
    parser = cli.Parser(
        description='Draw a row an image: the image, and its patches as '
        'bright as they count for the last CLS, by attention rollout through '
        'what is kept, fused, merged and cached'
    )
    parser.add(
        'files',
        'a config (path or name; without, the one in the checkpoint), '
        'weights and images, in any order',
        nargs='+',
        metavar='[CONFIG] CHECKPOINT IMAGE',
    )
    add_leaves(parser)
    parser.add('--out', 'picture to write', type=Path, required=True)
    add_model_arguments(parser)
    return parser.parse_args()


main = cli.command('vis_rollout', parse_args)

if __name__ == '__main__':
    cli.run(main)
