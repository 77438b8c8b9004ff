# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw which classes are taken for each other, with images side by side."""

from mmclca import cli
from mmclca.cli.arguments import (
    add_model_arguments,
    add_split_arguments,
    positive,
)


def parse_args():
    parser = cli.Parser(
        description='Draw the confusion matrix of the classes that are most '
        'often taken for each other; below it a row a pair: images of the '
        'one class that are right, those that are taken for the other class, '
        'and images of that'
    )
    add_split_arguments(parser)
    parser.add('--pairs', 'pairs of classes to draw', 5, type=positive)
    parser.add('--examples', 'images of a kind to draw', 3, type=positive)
    parser.add('--batch-size', 'images at a time', 32, type=positive)
    add_model_arguments(parser)
    return parser.parse_args()


main = cli.command('vis_confusions', parse_args)

if __name__ == '__main__':
    cli.run(main)
