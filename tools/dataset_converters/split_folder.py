# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Split your own images, a folder a class, into training and validation.

python tools/dataset_converters/split_folder.py my_leaves --val-fraction 0.2

No image is copied or moved: lists are written, and the command to train with
them is printed.
"""

from pathlib import Path

from mmclca import cli
from mmclca.utils.image_suffixes import IMAGE_SUFFIXES


def parse_args(argv=None):
    parser = cli.Parser(
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
    return parser.parse_args(argv)


main = cli.command('split_folder', parse_args)

if __name__ == '__main__':
    cli.run(main)
