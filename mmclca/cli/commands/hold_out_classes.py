# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/dataset_converters/hold_out_classes.py`` does."""

from mmclca.datasets.preparation.hold_out import draw_classes, hold_out
from mmclca.datasets.preparation.lists import read_list, write_lists
from mmclca.utils.reading import read_lines
from mmclca.utils.terminal import say

from .. import plain_errors

REFUSAL = 'lists that differ are there; write to another --out'


def run(args):
    classes = read_lines(args.folder / 'classes.txt')
    held_out = draw_classes(len(classes), args.num, args.seed)
    names = dict(train=args.train, val=args.val, test=args.test)
    given = {
        split: read_list(args.folder, name, len(classes))
        for split, name in names.items()
        if name
    }
    lists = hold_out(given, classes, held_out, args.out)
    write_lists(lists, REFUSAL)
    for file, lines in lists.items():
        print(f'{file}: {len(lines)} lines')
    say(f'held out: {", ".join(classes[i] for i in held_out)}')


def main(args):
    with plain_errors(args.folder):
        run(args)
