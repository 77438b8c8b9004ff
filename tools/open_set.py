# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Choose the score below which an image is of no known class.

python tools/open_set.py CKPT --known my_leaves/val.txt
python tools/predict.py CKPT IMAGES --reject CKPT.threshold.json

With images of unknown classes it also measures how well that works.
"""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import (
    add_config_argument,
    add_model_arguments,
    check_file,
)
from mmclca.cli.choices import SCORES

PLACE = 'a folder, or a .txt list of "path label" or "path"'


def parse_args():
    parser = cli.Parser(
        description='Choose, on validation images of known classes, the score '
        'below which an image is named unknown. It is written beside the '
        'checkpoint, for predict.py --reject'
    )
    parser.add_argument('checkpoint', help='weights of a classifier')
    add_config_argument(parser)
    parser.add_argument(
        '--known',
        metavar='PLACE',
        help=f'images to choose the threshold on: {PLACE} (default: the '
        'validation split of the config)',
    )
    parser.add_argument(
        '--score',
        choices=SCORES,
        default='max_softmax',
        help='what is compared with the threshold (default: %(default)s)',
    )
    parser.add_argument(
        '--accept',
        type=float,
        default=0.95,
        help='share of the known images to accept (default: %(default)s)',
    )
    parser.add_argument(
        '--unknown',
        metavar='PLACE',
        help='images of unknown classes, to measure with',
    )
    parser.add_argument(
        '--test',
        metavar='PLACE',
        help='other images of known classes, to measure with (default: the '
        'test split of the config)',
    )
    parser.add_argument(
        '--out',
        type=Path,
        help='file for the threshold (default: CHECKPOINT without its ending '
        'and with .threshold.json)',
    )
    parser.add_argument(
        '--batch-size', type=int, default=32, help='images at a time'
    )
    add_model_arguments(parser)
    args = parser.parse_args()
    if args.test and not args.unknown:
        parser.error('--test needs --unknown, images of unknown classes')
    if args.out is None and '://' in args.checkpoint:
        parser.error('weights from an address need --out')
    if args.out is None:
        args.out = Path(args.checkpoint).with_suffix('.threshold.json')
    if args.out.suffix != '.json':
        parser.error(f'--out {args.out}: the name must end in .json')
    check_file(parser, args.out)
    return args


def main():
    args = parse_args()
    from mmclca.cli.commands import open_set

    open_set.main(args)


if __name__ == '__main__':
    cli.run(main)
