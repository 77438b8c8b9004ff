# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw rows of the cross-patch matrices of a ResMLP as maps of their input
patches, and the sparsity of the matrices in each layer.
"""

from ..arguments import positive
from ..listing import Listing
from ..picture_inputs import add_model, load_model

LISTING = Listing('analyze', 'cross-patch weights of a ResMLP', 'pictures')


def add_arguments(parser):
    add_model(parser)
    parser.add(
        '--layers',
        'layers to draw, from 0 (default: all)',
        nargs='+',
        type=int,
        metavar='N',
    )
    parser.add(
        '--rows',
        'size N of the N x N central patches to draw',
        6,
        type=positive,
        metavar='N',
    )


def draw(args):
    from mmclca.visualization.cross_patch import draw_cross_patch

    backbone = load_model(args, args.files).backbone
    draw_cross_patch(backbone, args.out, args.layers, args.rows)
    return args.out
