# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw which classes are taken for each other, with images side by side."""

from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import add_model_arguments, add_split_arguments, positive

apis = lazy('mmclca.apis')
model_files = lazy('mmclca.cli.model_files')
batches = lazy('mmclca.datasets.batches')
confusions = lazy('mmclca.visualization.confusions')
figures = lazy('mmclca.visualization.figures')


def parse_args():
    parser = Parser(
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


@plain_errors()
def main(args):
    figures.check_picture(args.out)
    config, checkpoint, _ = model_files.sort_files(args.files)
    inferencer = apis.TokenReductionInferencer(
        config, checkpoint, args.device, options=args.cfg_options
    )
    model = inferencer.model
    dataset = batches.dataset_of(model._config, args.split)
    every = range(len(dataset))
    found = batches.batches(model, dataset, every, args.batch_size)
    predictions = confusions.predict(model, found, inferencer.classes)
    confusions.draw_confusions(
        predictions, args.out, args.pairs, args.examples
    )
    print(args.out)
