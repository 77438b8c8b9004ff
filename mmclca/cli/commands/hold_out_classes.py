# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write the lists of a dataset without some random classes, and
held_out/images.txt with all images of these classes.

python tools/dataset_converters/hold_out_classes.py data/leaf40_white \
    --train train_3shot.txt --val train.txt --test test.txt --num 10 --out DIR

Images are not copied; lists are written for train.py and open_set.py.
"""

from dataclasses import replace
from pathlib import Path

from mmclca.utils.messages import print_safe

from ..listing import Listing

LISTING = Listing(
    'data', 'hold out classes to test unknown ones', 'unknown_classes'
)

# split_folder.py writes a test list on request only
SPLITS = dict(train='train.txt', val='val.txt', test=None)
REFUSAL = 'other lists already exist; choose another --out'


def add_arguments(parser):
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


def run(args):
    from mmclca.datasets.photos import lists

    names = dict(train=args.train, val=args.val, test=args.test)
    names = {split: name for split, name in names.items() if name}
    images = lists.read_lists(args.folder, names)
    remaining, held_out_images = lists.hold_out_classes(
        images, args.num, args.seed
    )
    held_out = lists.format_lists(
        replace(held_out_images, splits=['images'] * len(held_out_images)),
        args.out / 'held_out',
        ['images'],
    )
    contents = lists.format_lists(remaining, args.out, names)
    contents |= held_out
    lists.write_lists(contents, REFUSAL)
    print_safe(f'Held out   {", ".join(held_out_images.classes)}')
    for path, lines in contents.items():
        print_safe(f'Saved      {path} ({len(lines)} lines)')


def main(args):
    run(args)
