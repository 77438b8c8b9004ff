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
    file_named,
    positive,
)
from mmclca.cli.choices import SCORES

PLACE = 'a folder, or a .txt list of "path label" or "path"'


def parse_args():
    parser = cli.Parser(
        description='Choose, on validation images of known classes, the score '
        'below which an image is of no known class. It is written beside the '
        'checkpoint, for predict.py --reject'
    )
    parser.add('checkpoint', 'weights of a classifier')
    add_config_argument(parser)
    parser.add(
        '--known',
        f'images to choose the threshold on: {PLACE} (default: the '
        'validation split of the config)',
        metavar='PLACE',
    )
    parser.add(
        '--score',
        'what is compared with the threshold',
        'max_softmax',
        choices=SCORES,
    )
    parser.add('--accept', 'share of the known images to accept', 0.95)
    parser.add(
        '--unknown',
        'images of unknown classes, to measure with',
        metavar='PLACE',
    )
    parser.add(
        '--test',
        'other images of known classes, to measure with (default: the test '
        'split of the config)',
        metavar='PLACE',
    )
    parser.add(
        '--out',
        'file for the threshold (default: CHECKPOINT without its ending and '
        'with .threshold.json)',
        type=file_named('.json'),
    )
    parser.add('--batch-size', 'images at a time', 32, type=positive)
    add_model_arguments(parser)
    args = parser.parse_args()
    if args.test and not args.unknown:
        parser.error('--test needs --unknown, images of unknown classes')
    if args.out is None and '://' in args.checkpoint:
        parser.error('weights from an address need --out')
    if args.out is None:
        args.out = Path(args.checkpoint).with_suffix('.threshold.json')
    check_file(parser, args.out)
    return args


main = cli.command('open_set', parse_args)

if __name__ == '__main__':
    cli.run(main)
