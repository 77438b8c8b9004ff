# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Split your own images, a folder a class, into training and validation.

python tools/dataset_converters/split_folder.py my_leaves --val-fraction 0.2

No image is copied or moved: lists are written, and the command to train with
them is printed.
"""

from pathlib import Path

from mmclca.utils.image_suffixes import IMAGE_SUFFIXES
from mmclca.utils.lazy import lazy
from mmclca.utils.terminal import say

from .. import Parser, plain_errors

lists = lazy('mmclca.datasets.preparation.lists')
split = lazy('mmclca.datasets.preparation.split')
training = lazy('mmclca.datasets.preparation.training_command')

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


def readable(folder, skip, jobs):
    """Images by class that can be read; says what is left aside.

    Raises:
        ValueError: Naming all unreadable images, unless ``skip``.
    """
    classes, ignored = split.find_classes(folder)
    say(*(f'ignored: {count} {what}' for what, count in ignored.items()))
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
    say(*(f'left out: {file}: {problem}' for file, problem in bad.items()))
    return split.without(classes, bad)


def warn_of_small_classes(classes, wanted):
    """Tell which classes cannot be in all lists."""
    sizes = {name: len(files) for name, files in classes.items()}
    small = [f'{name} ({n})' for name, n in sizes.items() if n < wanted]
    if small:
        say(
            f'warning: fewer than {wanted} images, so that the class is '
            f'trained on, and missing in other lists: {", ".join(small)}'
        )


def run(args):
    fractions = args.val_fraction, args.test_fraction
    split.check_fractions(*fractions)
    out = args.out or args.folder
    classes = readable(args.folder, args.skip_unreadable, args.jobs)
    parts = split.split(classes, *fractions, args.seed)
    warn_of_small_classes(classes, 3 if args.test_fraction else 2)
    found = {out / 'classes.txt': list(classes)}
    for name, images in parts.items():
        if images:
            found[out / f'{name}.txt'] = lists.list_lines(images, out)
    old = [out / f'{name}.txt' for name in split.SPLITS]
    lists.write_lists(found, REFUSAL, old, args.force)
    for file, lines in found.items():
        print(f'{file}: {len(lines)} lines')
    command = training.training_command(out, len(classes), bool(parts['test']))
    print('\nTo train on them:\n', *command, sep='\n')


def main(args):
    with plain_errors(args.folder):
        run(args)
