# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the attention rollout of images: what of them reaches the last CLS."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_model_arguments


def parse_args():
    parser = cli.Parser(
        description='Draw a row an image: the image, and its patches as '
        'bright as they count for the last CLS, by attention rollout through '
        'what is kept, fused, merged and cached'
    )
    parser.add_argument(
        'files',
        nargs='+',
        metavar='[CONFIG] CHECKPOINT IMAGE',
        help='a config (path or name; without, the one in the checkpoint), '
        'weights and images, in any order',
    )
    parser.add_argument(
        '--leaves',
        type=int,
        default=0,
        metavar='N',
        help='draw N synthetic leaves besides, each of another cultivar',
    )
    parser.add_argument(
        '--out', type=Path, required=True, help='picture to write'
    )
    add_model_arguments(parser)
    return parser.parse_args()


def main():
    args = parse_args()
    from mmclca.cli.commands import vis_rollout

    vis_rollout.main(args)


if __name__ == '__main__':
    cli.run(main)
