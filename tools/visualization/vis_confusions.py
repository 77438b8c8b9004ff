# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw which classes are taken for each other, with images side by side."""

import argparse

from mmclca.utils.command_line import plain_errors
from mmclca.visualization.batches import batches, dataset_of
from mmclca.visualization.confusions import draw_confusions, predict
from mmclca.visualization.figure_files import check_picture
from mmclca.visualization.model_files import (
    add_model_arguments,
    add_split_arguments,
    load,
    sort_files,
)


def parse_args():
    parser = argparse.ArgumentParser(
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


def draw(args):
    check_picture(args.out)
    config, checkpoint, _ = sort_files(args.files)
    inferencer = load(config, checkpoint, args.cfg_options, args.device)
    model = inferencer.model
    dataset = dataset_of(model._config, args.split)
    every = range(len(dataset))
    found = batches(model, dataset, every, args.batch_size)
    predictions = predict(model, found, inferencer.classes)
    draw_confusions(predictions, args.out, args.pairs, args.examples)


def main():
    args = parse_args()
    with plain_errors('vis_confusions.py'):
        draw(args)
    print(args.out)


if __name__ == '__main__':
    main()
