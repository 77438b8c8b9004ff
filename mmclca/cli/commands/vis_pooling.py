# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw what attention pooling reads of images, by class where it can."""

from pathlib import Path

from mmclca.utils.known_names import not_one_of
from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import add_leaves, add_model_arguments

apis = lazy('mmclca.apis')
model_files = lazy('mmclca.cli.model_files')
batches = lazy('mmclca.datasets.batches')
synthetic_leaves = lazy('mmclca.datasets.synthetic_leaves')
visualization = lazy('mmclca.visualization')
figures = lazy('mmclca.visualization.figures')
pooling = lazy('mmclca.visualization.pooling')


def parse_args():
    parser = Parser(
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


def label_of(text, names):
    """The label of a class, by its name or its number."""
    if text in names:
        return names.index(text)
    if text.isdecimal() and int(text) < len(names):
        return int(text)
    raise ValueError(
        f'--classes: {not_one_of(text, names)}, also by their labels, 0 to '
        f'{len(names) - 1}'
    )


@plain_errors()
def main(args):
    figures.check_picture(args.out)
    config, checkpoint, paths = model_files.sort_files(args.files)
    images = [
        *model_files.read_images(paths),
        *synthetic_leaves.drawn_leaves(args.leaves),
    ]
    if not images:
        raise ValueError('nothing to draw: name images, or give --leaves 1')
    inferencer = apis.TokenReductionInferencer(
        config, checkpoint, args.device, options=args.cfg_options
    )
    model, names = inferencer.model, list(inferencer.classes)
    labels = [label_of(text, names) for text in args.classes or ()]
    views = [
        batches.view(model, inferencer.pipeline, *image) for image in images
    ]
    rows = [
        row
        for one in views
        for row in pooling.pooled(model, one, names, labels)
    ]
    visualization.draw_heat_maps(
        rows, args.out, 'share of the patch in what is pooled'
    )
    print(args.out)
