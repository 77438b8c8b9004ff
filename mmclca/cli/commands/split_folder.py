# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Split images, one folder per class, into training, validation and test
lists. Class folders may have subfolders.

python tools/dataset_converters/split_folder.py my_leaves --val-fraction 0.2

Images are not copied; lists are written, and the training command is printed.
"""

import re
from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.image_suffixes import IMAGE_SUFFIXES
from mmclca.utils.messages import print_safe, warn

from ..listing import Listing

LISTING = Listing(
    'data', 'split class folders into train, val and test', 'training'
)

CONFIG = (
    'configs/few_shot/lf-evit-kr50_deit-tiny-p16_1xb32-20e_custom-224px.py'
)
REFUSAL = 'another split exists: choose another --out, or add --force'


def add_arguments(parser):
    parser.description += f' Accepted file types: {", ".join(IMAGE_SUFFIXES)}.'
    parser.add('folder', 'folder with one folder per class', type=Path)
    parser.add('--val-fraction', 'validation share', 0.2)
    parser.add('--test-fraction', 'test share (default: no test list)', 0.0)
    parser.share('--seed')
    parser.add('--out', 'folder for the lists (default: FOLDER)', type=Path)
    parser.flag('--force', 'replace existing lists')


def images_in(folder):
    """Read the images as ``fit`` does; print the skipped files."""
    from mmclca.datasets.photos import check_photos
    from mmclca.datasets.photos.read import read_folder

    if not folder.is_dir():
        raise Error(f'{folder} is not a folder')
    photos = read_folder(folder, IMAGE_SUFFIXES)
    if any(photos.splits):
        splits = ', '.join(sorted({*photos.splits}))
        raise Error(
            f'{folder} is split ({splits}): expected one folder per class'
        )
    print_safe(
        f'Data       {len(photos)} images, {len(photos.classes)} classes'
    )
    checked = check_photos(photos)
    for problem in checked.list_problems():
        print_safe(problem.describe())
    return checked.photos


def warn_of_small_classes(images, wanted):
    """Warn if classes have fewer images than lists."""
    counts = images.counts().items()
    small = [f'{name} ({count})' for name, count in counts if count < wanted]
    if small:
        warn(
            f'classes with fewer than {wanted} images are in the training '
            f'list only: {", ".join(small)}'
        )


def training_command(out, num_classes, has_test):
    """Return the training command for the lists."""
    from mmclca.datasets.photos.lists import SPLITS

    options = [f'model.head.num_classes={num_classes}']
    for name in SPLITS:
        loader = f'{name}_dataloader.dataset'
        options.append(f'{loader}.data_root={out}')
        options.append(f'{loader}.classes={out / "classes.txt"}')
    if has_test:
        options.append('test_dataloader.dataset.ann_file=test.txt')
    return ' \\\n    '.join(
        [f'python tools/train.py {CONFIG} --cfg-options', *options]
    )


def run(args):
    from mmclca.datasets.photos import lists

    # refuse wrong fractions before images are opened
    lists.split_sizes(0, args.val_fraction, args.test_fraction)
    out = args.out or args.folder
    images = images_in(args.folder)
    warn_of_small_classes(images, 3 if args.test_fraction else 2)
    parts = lists.split_photos(
        images, args.val_fraction, args.test_fraction, args.seed
    )
    contents = lists.format_lists(parts, out)
    old = [out / f'{name}.txt' for name in lists.SPLITS]
    lists.write_lists(contents, REFUSAL, old, args.force)
    for path, lines in contents.items():
        print_safe(f'Saved      {path} ({len(lines)} lines)')
    command = training_command(
        out, len(images.classes), 'test' in parts.splits
    )
    print(f'Next       train with\n\n{command}')
    if re.search(r'[\s,]', f'{out}'):
        warn(f'{out} contains spaces or commas: rename the folder')


def main(args):
    run(args)
