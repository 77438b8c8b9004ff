# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw how much alike the layers of one model, or of two, are (CKA)."""

from mmclca import cli
from mmclca.cli.arguments import add_model_arguments, add_split_arguments
from mmclca.cli.choices import FEATURES, FEWEST


def parse_args():
    parser = cli.Parser(
        description='Draw the similarity (linear CKA) of what layers make of '
        'images: of each two layers of a model, or of the layers of one model '
        'and those of another'
    )
    add_split_arguments(parser)
    parser.add_argument(
        '--other',
        nargs='+',
        metavar='[CONFIG] CHECKPOINT',
        help='another model to compare with',
    )
    parser.add_argument(
        '--feature',
        choices=tuple(FEATURES),
        default='cls',
        help='compare the CLS tokens, the mean of the others, or all tokens '
        'in their order, which reducers change (default: %(default)s)',
    )
    parser.add_argument(
        '--num-images',
        type=int,
        default=256,
        help='images at most, evenly spread over the split; what does not '
        'fill a batch is left out (default: %(default)s)',
    )
    parser.add_argument(
        '--batch-size',
        type=int,
        default=32,
        help='images that are compared with each other at a time, 4 or more '
        '(default: %(default)s)',
    )
    add_model_arguments(parser)
    args = parser.parse_args()
    if args.batch_size < FEWEST or args.num_images < args.batch_size:
        parser.error(
            f'--batch-size must be {FEWEST} or more, and --num-images as many '
            'as --batch-size or more'
        )
    return args


def main():
    args = parse_args()
    from mmclca.cli.commands import vis_cka

    vis_cka.main(args)


if __name__ == '__main__':
    cli.run(main)
