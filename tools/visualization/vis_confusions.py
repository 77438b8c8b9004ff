# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw which classes are taken for each other, with images side by side."""

from mmclca import cli
from mmclca.cli.arguments import add_model_arguments, add_split_arguments


def parse_args():
    parser = cli.Parser(
        description='Draw the confusion matrix of the classes that are most '
        'often taken for each other; below it a row a pair: images of the '
        'one class that are right, those that are taken for the other class, '
        'and images of that'
    )
    add_split_arguments(parser)
    parser.add_argument(
        '--pairs', type=int, default=5, help='pairs of classes to draw'
    )
    parser.add_argument(
        '--examples', type=int, default=3, help='images of a kind to draw'
    )
    parser.add_argument(
        '--batch-size', type=int, default=32, help='images at a time'
    )
    add_model_arguments(parser)
    args = parser.parse_args()
    if min(args.pairs, args.examples, args.batch_size) < 1:
        parser.error('--pairs, --examples and --batch-size must be 1 or more')
    return args


def main():
    args = parse_args()
    from mmclca.cli.commands import vis_confusions

    vis_confusions.main(args)


if __name__ == '__main__':
    cli.run(main)
