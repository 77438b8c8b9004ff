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
    parser.add(
        '--other',
        'another model to compare with',
        nargs='+',
        metavar='[CONFIG] CHECKPOINT',
    )
    parser.add(
        '--feature',
        'compare the CLS tokens, the mean of the others, or all tokens in '
        'their order, which reducers change',
        'cls',
        choices=FEATURES,
    )
    parser.add(
        '--num-images',
        'images at most, evenly spread over the split; what does not fill a '
        'batch is left out',
        256,
    )
    parser.add(
        '--batch-size',
        'images that are compared with each other at a time, 4 or more',
        32,
    )
    add_model_arguments(parser)
    args = parser.parse_args()
    if args.batch_size < FEWEST or args.num_images < args.batch_size:
        parser.error(
            f'--batch-size must be {FEWEST} or more, and --num-images as many '
            'as --batch-size or more'
        )
    return args


main = cli.command('vis_cka', parse_args)

if __name__ == '__main__':
    cli.run(main)
