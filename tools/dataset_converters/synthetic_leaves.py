# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw a data set of leaf cultivars.

python tools/dataset_converters/synthetic_leaves.py data/synthetic_leaves

The classes differ in shape alone: outline, teeth and veins. The same options
give the same files, byte for byte, with any number of jobs.
"""

from pathlib import Path

from mmclca import cli


def parse_args(argv):
    parser = cli.Parser(
        description='Draw leaf cultivars, alike in colour and size, that '
        'differ in outline, teeth and veins.'
    )
    parser.add_argument('out', type=Path, help='folder to make')
    parser.add_argument('--classes', type=int, default=8)
    parser.add_argument(
        '--per-class',
        type=int,
        default=30,
        help='images a class, all splits together (default: %(default)s)',
    )
    parser.add_argument(
        '--size', type=int, default=224, help='pixels (default: %(default)s)'
    )
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument(
        '--difference',
        type=float,
        default=1.0,
        help='distance between the cultivars, 0 to 2 (default: %(default)s)',
    )
    parser.add_argument('--val-fraction', type=float, default=0.2)
    parser.add_argument('--test-fraction', type=float, default=0.2)
    parser.add_argument(
        '--layout',
        choices=LAYOUTS,
        default='folders',
        help='folders: images/CLASS/*.jpg, lists `path label`, classes.txt. '
        'ultra-fgvc: images/*.png and the CSV lists of the CLCA authors',
    )
    parser.add_argument(
        '--jobs', type=int, default=1, help='processes (default: %(default)s)'
    )
    return parser.parse_args(argv)


LAYOUTS = ('folders', 'ultra-fgvc')


def main(argv=None):
    args = parse_args(argv)
    from mmclca.cli.commands import synthetic_leaves

    synthetic_leaves.main(args)


if __name__ == '__main__':
    cli.run(main)
