# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw class activation maps (Grad-CAM): what speaks for a class."""

import argparse
import re
from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_model_arguments
from mmclca.cli.choices import CAM_METHODS

LAYER = r'(?:(?:backbone\.)?layers[.[])?(-?\d+)\]?(?:\.ln1)?'


def parse_args():
    parser = cli.Parser(
        description='Draw a row an image: the image, and for each class its '
        'patches as bright as they speak for it (Grad-CAM of the tokens that '
        'a layer reads, put back in the places of their patches)'
    )
    parser.add_argument(
        'files',
        nargs='+',
        metavar='IMAGE [CONFIG] CHECKPOINT',
        help='images, a config (path or name; without, the one in the '
        'checkpoint) and weights, in any order',
    )
    parser.add_argument(
        '--target-layers',
        '--target-layer',
        nargs='+',
        type=layer,
        default=[-1],
        metavar='LAYER',
        help='layers from 0, or from the last, -1, also as '
        'backbone.layers[-1].ln1; of several the mean (default: -1)',
    )
    parser.add_argument(
        '--target-category',
        nargs='+',
        type=int,
        help='labels of the classes to explain (default: the one that the '
        'model predicts)',
    )
    add_method_arguments(parser)
    parser.add_argument('--save-path', type=Path, help='picture to write')
    parser.add_argument(
        '--preview-model',
        action='store_true',
        help='list what --target-layers may name, and end',
    )
    parser.add_argument(
        '--vit-like',
        action='store_true',
        help="taken for granted; commands for mmpretrain's tool have it",
    )
    parser.add_argument(
        '--num-extra-tokens',
        type=int,
        help='not needed: the trace of the tokens tells which are patches',
    )
    add_model_arguments(parser)
    args = parser.parse_args()
    if not (args.save_path or args.preview_model):
        parser.error('name the picture to write: --save-path cam.png')
    return args


def add_method_arguments(parser):
    parser.add_argument(
        '--method',
        default='GradCAM',
        help=f'one of {", ".join(CAM_METHODS)}, in any case (default: '
        '%(default)s)',
    )
    parser.add_argument(
        '--eigen-smooth',
        action='store_true',
        help='first principal component of what channels add, not their sum',
    )
    parser.add_argument(
        '--aug-smooth',
        action='store_true',
        help='mean of six views of an image, mirrored and lit otherwise',
    )


def layer(text):
    """The number of a layer, also out of the name of its module."""
    found = re.fullmatch(LAYER, text)
    if not found:
        raise argparse.ArgumentTypeError(
            f'{text!r}: a number, or backbone.layers[NUMBER].ln1'
        )
    return int(found[1])


def main():
    args = parse_args()
    from mmclca.cli.commands import vis_cam

    vis_cam.main(args)


if __name__ == '__main__':
    cli.run(main)
