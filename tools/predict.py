# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Name what is on images: ``python tools/predict.py CKPT IMAGES``."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import (
    add_config_argument,
    add_model_arguments,
    check_file,
    is_weights,
)


def parse_args():
    parser = cli.Parser(
        description='Predict the classes of images with a trained model. '
        'Results go to stdout, progress and what could not be read to stderr'
    )
    parser.add_argument(
        'checkpoint',
        help='path or URL of the weights; the config and the class names are '
        'stored in it',
    )
    parser.add_argument(
        'images',
        nargs='+',
        help='files, folders (with all below them) or patterns such as '
        '"scans/*.tif"',
    )
    add_config_argument(parser)
    parser.add_argument(
        '--topk', type=int, default=5, help='classes to name for each image'
    )
    parser.add_argument(
        '--batch-size', type=int, default=32, help='images at a time'
    )
    parser.add_argument(
        '--out', type=Path, help='write the results to a .csv or .json file'
    )
    parser.add_argument(
        '--tokens',
        action='store_true',
        help='write the tokens of each layer and the GMACs of each image too, '
        'to .json also the maps of kept patches, of attention and attribution',
    )
    parser.add_argument(
        '--pictures',
        type=Path,
        metavar='DIR',
        help='draw what is left of each image stage by stage, with its class',
    )
    parser.add_argument(
        '--reject',
        type=Path,
        metavar='THRESHOLD.json',
        help='file of open_set.py: images whose score is below its threshold '
        'are named unknown',
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
    if args.topk < 1 or args.batch_size < 1:
        parser.error('--topk and --batch-size must be 1 or more')
    if args.tokens and not args.out:
        parser.error('--tokens needs --out, the file to write them to')
    if args.out and args.out.suffix not in ('.csv', '.json'):
        parser.error(f'--out {args.out}: the name must end in .csv or .json')
    if args.out:
        check_file(parser, args.out)


def main():
    args = parse_args()
    from mmclca.cli.commands import predict

    predict.main(args)


if __name__ == '__main__':
    cli.run(main)
