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
    parser.add(
        'files',
        'images, a config (path or name; without, the one in the checkpoint) '
        'and weights, in any order',
        nargs='+',
        metavar='IMAGE [CONFIG] CHECKPOINT',
    )
    parser.add(
        '--target-layers --target-layer',
        'layers from 0, or from the last, -1, also as '
        'backbone.layers[-1].ln1; of several the mean (default: -1)',
        [-1],
        nargs='+',
        type=layer,
        metavar='LAYER',
    )
    parser.add(
        '--target-category',
        'labels of the classes to explain (default: the one that the model '
        'predicts)',
        nargs='+',
        type=int,
    )
    add_method_arguments(parser)
    parser.add('--save-path', 'picture to write', type=Path)
    parser.flag(
        '--preview-model', 'list what --target-layers may name, and end'
    )
    parser.flag(
        '--vit-like',
        "taken for granted; commands for mmpretrain's tool have it",
    )
    parser.add(
        '--num-extra-tokens',
        'not needed: the trace of the tokens tells which are patches',
        type=int,
    )
    add_model_arguments(parser)
    args = parser.parse_args()
    if not (args.save_path or args.preview_model):
        parser.error('name the picture to write: --save-path cam.png')
    return args


def add_method_arguments(parser):
    parser.add(
        '--method',
        f'one of {", ".join(CAM_METHODS)}, in any case (default: %(default)s)',
        'GradCAM',
    )
    parser.flag(
        '--eigen-smooth',
        'first principal component of what channels add, not their sum',
    )
    parser.flag(
        '--aug-smooth',
        'mean of six views of an image, mirrored and lit otherwise',
    )


def layer(text):
    """The number of a layer, also out of the name of its module."""
    found = re.fullmatch(LAYER, text)
    if not found:
        raise argparse.ArgumentTypeError(
            f'{text!r}: a number, or backbone.layers[NUMBER].ln1'
        )
    return int(found[1])


main = cli.command('vis_cam', parse_args)

if __name__ == '__main__':
    cli.run(main)
