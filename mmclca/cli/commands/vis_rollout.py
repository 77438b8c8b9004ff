# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the attention rollout of images: what of them reaches the last CLS."""

from pathlib import Path

from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import add_leaves, add_model_arguments

apis = lazy('mmclca.apis')
model_files = lazy('mmclca.cli.model_files')
batches = lazy('mmclca.datasets.batches')
synthetic_leaves = lazy('mmclca.datasets.synthetic_leaves')
visualization = lazy('mmclca.visualization')
figures = lazy('mmclca.visualization.figures')


def parse_args():
    parser = Parser(
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
    model = inferencer.model
    views = [
        batches.view(model, inferencer.pipeline, *image) for image in images
    ]
    rows = [
        visualization.Heated(
            one.title,
            one.image,
            {'rollout': visualization.rollout(model, one.batch)[0]},
        )
        for one in views
    ]
    visualization.draw_heat_maps(
        rows, args.out, 'share of the patch in the last CLS'
    )
    print(args.out)
