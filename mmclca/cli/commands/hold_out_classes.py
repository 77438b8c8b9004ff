# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Hold classes out of a data set, to try what becomes of unknown ones.

python tools/dataset_converters/hold_out_classes.py data/leaf40_white \
    --train train_3shot.txt --val train.txt --test test.txt --num 10 --out DIR

No image is copied or moved: lists are written, for train.py and open_set.py.
"""

from pathlib import Path

from mmclca.utils.lazy import lazy
from mmclca.utils.terminal import say

from .. import Parser, plain_errors

hold_out = lazy('mmclca.datasets.preparation.hold_out')
reading = lazy('mmclca.utils.reading')
preparation_lists = lazy('mmclca.datasets.preparation.lists')

# split_folder.py writes a test list on request only
SPLITS = dict(train='train.txt', val='val.txt', test=None)
REFUSAL = 'lists that differ are there; write to another --out'


def parse_args():
    parser = Parser(
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
    return parser.parse_args()


def run(args):
    classes = reading.read_lines(args.folder / 'classes.txt')
    held_out = hold_out.draw_classes(len(classes), args.num, args.seed)
    names = dict(train=args.train, val=args.val, test=args.test)
    given = {
        split: preparation_lists.read_list(args.folder, name, len(classes))
        for split, name in names.items()
        if name
    }
    lists = hold_out.hold_out(given, classes, held_out, args.out)
    preparation_lists.write_lists(lists, REFUSAL)
    for file, lines in lists.items():
        print(f'{file}: {len(lines)} lines')
    say(f'held out: {", ".join(classes[i] for i in held_out)}')


def main(args):
    with plain_errors(args.folder):
        run(args)
