# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Split your own images, a folder a class, into training and validation.

python tools/dataset_converters/split_folder.py my_leaves --val-fraction 0.2

No image is copied or moved: lists are written, and the command to train with
them is printed.
"""

import itertools
import os
import re
import shlex
from pathlib import Path

from mmclca.utils.image_suffixes import IMAGE_SUFFIXES
from mmclca.utils.lazy import lazy
from mmclca.utils.terminal import say

from .. import Parser, plain_errors

preparation_lists = lazy('mmclca.datasets.preparation.lists')
split = lazy('mmclca.datasets.preparation.split')

CONFIG = (
    'configs/few_shot/lf-evit-kr50_deit-tiny-p16_1xb32-20e_custom-224px.py'
)
REFUSAL = (
    'a split that differs is there; keep it, write elsewhere with --out, or '
    'replace it with --force'
)


def parse_args():
    parser = Parser(
        description='Split images, a folder a class, into training and '
        f'validation. Images end in {", ".join(IMAGE_SUFFIXES)}, in any '
        'case, and may lie in folders below that of their class.'
    )
    parser.add('folder', 'has a folder a class', type=Path)
    parser.add('--val-fraction', 'share that is validated with', 0.2)
    parser.add(
        '--test-fraction',
        'share that is kept for a test list (default: no such list)',
        0.0,
    )
    parser.add('--seed', 'of the draw', 0)
    parser.add('--out', 'folder for the lists (default: FOLDER)', type=Path)
    parser.flag(
        '--skip-unreadable',
        'leave images that cannot be read out of the lists',
    )
    parser.flag('--force', 'replace lists that differ')
    parser.add('--jobs', 'processes that open images', 1)
    return parser.parse_args()


def classes_of(folder):
    """Images by class; says what is left aside."""
    classes, ignored = split.find_classes(folder)
    for what, count in ignored.items():
        say(f'ignored: {count} {what}')
    return classes


def readable(classes, skip, jobs):
    """Images by class without those that cannot be read, which it names.

    Raises:
        ValueError: Naming all unreadable images, unless ``skip``.
    """
    number = sum(map(len, classes.values()))
    print(f'opening {number} images of {len(classes)} classes')
    bad = split.open_images(classes, jobs)
    print()
    if bad and not skip:
        lines = ''.join(f'\n  {f}: {problem}' for f, problem in bad.items())
        raise ValueError(
            f'{len(bad)} images cannot be read; repair or remove them, or '
            f'leave them out with --skip-unreadable:{lines}'
        )
    for file, problem in bad.items():
        say(f'left out: {file}: {problem}')
    return split.without(classes, bad)


def warn_of_small_classes(classes, wanted):
    """Tell which classes cannot be in all lists."""
    small = [
        f'{name} ({len(f)})' for name, f in classes.items() if len(f) < wanted
    ]
    if small:
        say(
            f'warning: fewer than {wanted} images, so that the class is '
            f'trained on, and missing in other lists: {", ".join(small)}'
        )


def free_link(target, name):
    """A place in ``data`` for a link that takes no other folder's name."""
    more = (f'{name}_{n}' for n in itertools.count(2))
    names = itertools.chain([name], more)
    places = (Path('data', name) for name in names)
    return next(
        p for p in places if not os.path.lexists(p) or p.resolve() == target
    )


def training_command(out, num_classes, has_test):
    """What to type to train with the lists, a line a list item."""
    lines = []
    if not re.fullmatch(r'[\w./-]*[a-zA-Z_/][\w./-]*', str(out)):
        # --cfg-options drops blanks and splits at commas
        target = out.resolve()
        out = free_link(target, re.sub(r'[^\w.-]', '_', target.name))
        link = f'mkdir -p data && ln -s {shlex.quote(str(target))} {out}'
        lines = [] if out.exists() else [link]
    options = [f'model.head.num_classes={num_classes}']
    for name in ('train', 'val', 'test'):
        loader = f'{name}_dataloader.dataset'
        options.append(f'{loader}.data_root={out}')
        options.append(f'{loader}.classes={out / "classes.txt"}')
    if has_test:
        options.append('test_dataloader.dataset.ann_file=test.txt')
    command = [f'python tools/train.py {CONFIG} --cfg-options', *options]
    return [*lines, ' \\\n    '.join(command)]


def run(args):
    fractions = args.val_fraction, args.test_fraction
    split.check_fractions(*fractions)
    out = args.out or args.folder
    classes = classes_of(args.folder)
    classes = readable(classes, args.skip_unreadable, args.jobs)
    parts = split.split(classes, *fractions, args.seed)
    warn_of_small_classes(classes, 3 if args.test_fraction else 2)
    lists = {out / 'classes.txt': list(classes)}
    for name, images in parts.items():
        if images:
            lists[out / f'{name}.txt'] = preparation_lists.list_lines(
                images, out
            )
    old = [out / f'{name}.txt' for name in split.SPLITS]
    preparation_lists.write_lists(lists, REFUSAL, old, args.force)
    for file, lines in lists.items():
        print(f'{file}: {len(lines)} lines')
    print('\nTo train on them:\n')
    command = training_command(out, len(classes), bool(parts['test']))
    print('\n'.join(command))


def main(args):
    with plain_errors(args.folder):
        run(args)
