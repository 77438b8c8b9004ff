# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Split your own images, a folder a class, into training and validation.

python tools/dataset_converters/split_folder.py my_leaves --val-fraction 0.2

No image is copied or moved: lists are written, and the command to train with
them is printed.
"""

from pathlib import Path

from mmclca import cli
from mmclca.utils.image_suffixes import IMAGE_SUFFIXES


def parse_args(argv):
    parser = cli.Parser(
        description='Split images, a folder a class, into training and '
        f'validation. Images end in {", ".join(IMAGE_SUFFIXES)}, in any '
        'case, and may lie in folders below that of their class.'
    )
    parser.add_argument('folder', type=Path, help='has a folder a class')
    parser.add_argument('--val-fraction', type=float, default=0.2)
    parser.add_argument(
        '--test-fraction',
        type=float,
        default=0.0,
        help='share that is kept for a test list (default: no such list)',
    )
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument(
        '--out', type=Path, help='folder for the lists (default: FOLDER)'
    )
    parser.add_argument(
        '--skip-unreadable',
        action='store_true',
        help='leave images that cannot be read out of the lists',
    )
    parser.add_argument(
        '--force', action='store_true', help='replace lists that differ'
    )
    parser.add_argument(
        '--jobs', type=int, default=1, help='processes that open images'
    )
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    from mmclca.cli.commands import split_folder

    split_folder.main(args)


if __name__ == '__main__':
    cli.run(main)
