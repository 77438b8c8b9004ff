# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Hold classes out of a data set, to try what becomes of unknown ones.

python tools/dataset_converters/hold_out_classes.py data/leaf40_white \
    --train train_3shot.txt --val train.txt --test test.txt --num 10 --out DIR

No image is copied or moved: lists are written, for train.py and open_set.py.
"""

from pathlib import Path

from mmclca import cli

# split_folder.py writes a test list on request only
SPLITS = dict(train='train.txt', val='val.txt', test=None)


def parse_args(argv):
    parser = cli.Parser(
        description='Write the lists of a data set without some classes, '
        'drawn at random, and held_out/images.txt with all images of those'
    )
    parser.add_argument(
        'folder', type=Path, help='has classes.txt and the lists'
    )
    for name, default in SPLITS.items():
        parser.add_argument(
            f'--{name}',
            default=default,
            help='list of "path label"; images of an earlier list are left '
            'out of it (default: %(default)s)',
        )
    parser.add_argument(
        '--num', type=int, required=True, help='classes to hold out'
    )
    parser.add_argument(
        '--seed', type=int, default=0, help='of the draw (default: 0)'
    )
    parser.add_argument(
        '--out', type=Path, required=True, help='folder for the lists'
    )
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    from mmclca.cli.commands import hold_out_classes

    hold_out_classes.main(args)


if __name__ == '__main__':
    cli.run(main)
