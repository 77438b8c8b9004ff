# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw how the patches of a ResMLP communicate: its matrices, by layer."""

from pathlib import Path

from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import add_model_arguments, positive

loading = lazy('mmclca.apis.loading')
model_files = lazy('mmclca.cli.model_files')
cross_patch = lazy('mmclca.visualization.cross_patch')
figures = lazy('mmclca.visualization.figures')


def parse_args():
    parser = Parser(
        description='Draw rows of the matrices across patches of a ResMLP as '
        'maps of the patches that are read, and how sparse its matrices are '
        'in each layer'
    )
    parser.add(
        'files',
        'a config (path or name; without, the one in the checkpoint) and '
        'weights',
        nargs='+',
        metavar='[CONFIG] CHECKPOINT',
    )
    parser.add('--out', 'picture to write', type=Path, required=True)
    parser.add(
        '--layers',
        'layers, from 0, whose rows are drawn (default: all)',
        nargs='+',
        type=int,
        metavar='N',
    )
    parser.add(
        '--rows',
        'draw the rows of N x N patches around the centre',
        6,
        type=positive,
        metavar='N',
    )
    add_model_arguments(parser)
    return parser.parse_args()


@plain_errors()
def main(args):
    figures.check_picture(args.out)
    config, checkpoint, images = model_files.sort_files(args.files)
    if images:
        raise ValueError(f'{images[0]}: no images are read, leave them out')
    model = loading.load_classifier(
        config, checkpoint, args.cfg_options, args.device
    )
    cross_patch.draw_cross_patch(
        model.backbone, args.out, args.layers, args.rows
    )
    print(args.out)
