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


def parse_args(argv=None):
    parser = cli.Parser(
        description='Write the lists of a data set without some classes, '
        'drawn at random, and held_out/images.txt with all images of those'
    )
    parser.add('folder', 'has classes.txt and the lists', type=Path)
    for name, default in SPLITS.items():
        parser.add(
            f'--{name}',
            'list of "path label"; images of an earlier list are left out of '
            'it (default: %(default)s)',
            default,
        )
    parser.add('--num', 'classes to hold out', type=int, required=True)
    parser.add('--seed', 'of the draw', 0)
    parser.add('--out', 'folder for the lists', type=Path, required=True)
    return parser.parse_args(argv)


main = cli.command('hold_out_classes', parse_args)

if __name__ == '__main__':
    cli.run(main)
