# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Hold out classes of a dataset, to test unknown-class detection.

python tools/dataset_converters/hold_out_classes.py data/leaf40_white \
    --train train_3shot.txt --val train.txt --test test.txt --num 10 --out DIR

Images are not copied; lists are written for train.py and open_set.py.
"""

from dataclasses import replace
from pathlib import Path

from mmclca.utils.messages import print_safe

from .. import Parser, usage_errors
from ..packages import datasets

# split_folder.py writes a test list on request only
SPLITS = dict(train='train.txt', val='val.txt', test=None)
REFUSAL = 'other lists already exist; choose another --out'


def parse_args(argv=None):
    parser = Parser(
        description='Write the lists of a dataset without some random '
        'classes, and held_out/images.txt with all images of these classes.'
    )
    parser.add('folder', 'folder with classes.txt and the lists', type=Path)
    for name, default in SPLITS.items():
        parser.add(
            f'--{name}',
            'list of "path label", without images of earlier lists (default: '
            '%(default)s)',
            default,
        )
    parser.add('--num', 'classes to hold out', type=int, required=True)
    parser.share('--seed')
    parser.add('--out', 'folder for the lists', type=Path, required=True)
    return parser.parse_args(argv)


def run(args):
    lists_of = datasets.photos.lists
    given = dict(train=args.train, val=args.val, test=args.test)
    given = {split: name for split, name in given.items() if name}
    images = lists_of.read_lists(args.folder, given)
    known, unknown = lists_of.hold_out_classes(images, args.num, args.seed)
    held_out = lists_of.format_lists(
        replace(unknown, splits=['images'] * len(unknown)),
        args.out / 'held_out',
        ['images'],
    )
    lists = lists_of.format_lists(known, args.out, given)
    lists |= held_out
    lists_of.write_lists(lists, REFUSAL)
    print_safe(f'Held out   {", ".join(unknown.classes)}')
    print_safe(*(f'Saved      {x} ({len(y)} lines)' for x, y in lists.items()))


def main(args):
    with usage_errors(args.folder):
        run(args)
