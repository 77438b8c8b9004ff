# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the confusion matrix of the most confused classes. Below it, one
row per pair: correct images of the first class, images misclassified as
the second class, and images of the second class.
"""

from ..arguments import positive
from ..listing import Listing
from ..picture_inputs import add_split, load_model

LISTING = Listing(
    'analyze', 'examples of the most confused classes', 'pictures'
)


def add_arguments(parser):
    add_split(parser)
    parser.add('--pairs', 'class pairs to draw', 5, type=positive)
    parser.add('--examples', 'images per kind', 3, type=positive)
    parser.share('--batch-size')


def draw(args):
    from mmclca.datasets.batches import batches, build_dataset
    from mmclca.utils.extras import require
    from mmclca.visualization import confusions

    require('sklearn', extra='pictures')
    model, study = load_model(args, args.files), confusions
    dataset = build_dataset(model._config, args.split)
    read = batches(model, dataset, None, args.batch_size)
    predictions = study.predict(model, read, model._dataset_meta['classes'])
    study.draw_confusions(predictions, args.out, args.pairs, args.examples)
    return args.out
