# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Name what is on images: ``python tools/predict.py CKPT IMAGES``."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import (
    add_config_argument,
    add_model_arguments,
    check_file,
    file_named,
    is_weights,
    positive,
)


def parse_args():
    parser = cli.Parser(
        description='Predict the classes of images with a trained model. '
        'Results go to stdout, progress and what could not be read to stderr'
    )
    parser.add(
        'checkpoint',
        'path or URL of the weights; the config and the class names are '
        'stored in it',
    )
    parser.add(
        'images',
        'files, folders (with all below them) or patterns such as '
        '"scans/*.tif"',
        nargs='+',
    )
    add_config_argument(parser)
    parser.add('--topk', 'classes to name for each image', 5, type=positive)
    parser.add('--batch-size', 'images at a time', 32, type=positive)
    out = 'write the results to a .csv or .json file'
    parser.add('--out', out, type=file_named('.csv', '.json'))
    parser.flag(
        '--tokens',
        'write the tokens of each layer and the GMACs of each image too, to '
        '.json also the maps of kept patches, of attention and attribution',
    )
    parser.add(
        '--pictures',
        'draw what is left of each image stage by stage, with its class',
        type=Path,
        metavar='DIR',
    )
    parser.add(
        '--reject',
        'file of open_set.py: it says what is of no known class',
        type=Path,
        metavar='THRESHOLD.json',
    )
    add_model_arguments(parser)
    args = parser.parse_args()
    check(parser, args)
    return args


def check(parser, args):
    if args.checkpoint.endswith('.py'):
        checkpoint, *images = args.images
        images = ' '.join(images) or 'IMAGES'
        parser.error(
            'the checkpoint comes first, and holds the config: '
            f'predict.py {checkpoint} {images}. For another config: '
            f'predict.py {checkpoint} {images} --config {args.checkpoint}'
        )
    weights = [name for name in args.images if is_weights(name)]
    if weights:
        parser.error(
            f'{1 + len(weights)} checkpoints: '
            f'{" ".join([args.checkpoint, *weights])}. best_*.pth names '
            'several after a second run into one folder: write the one out'
        )
    if args.tokens and not args.out:
        parser.error('--tokens needs --out, the file to write them to')
    if args.out:
        check_file(parser, args.out)


main = cli.command('predict', parse_args)

if __name__ == '__main__':
    cli.run(main)
