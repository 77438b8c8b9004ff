# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images per second of a config's training data, without any model.

python tools/benchmark/data_pipeline.py CONFIG --workers 0 2

With the image cache and without it, an epoch of the one after an epoch of the
other. The first epoch starts the workers and fills the cache; of the later
ones the median is given.
"""

import argparse
from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_cfg_options, check_file
from mmclca.cli.benchmark import positive, whole


def parse_args(argv):
    parser = cli.Parser(
        description=__doc__.partition('\n\n')[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('config', help='path or name of a config')
    parser.add_argument(
        '--workers',
        nargs='+',
        type=whole,
        default=[0, 2, 4],
        metavar='N',
        help='processes that load (default: %(default)s)',
    )
    parser.add_argument(
        '--epochs',
        type=positive,
        default=5,
        help='epochs after the first (default: %(default)s)',
    )
    parser.add_argument(
        '--out', type=Path, help='write the table to a Markdown page'
    )
    add_cfg_options(parser)
    args = parser.parse_args(argv)
    if args.out:
        check_file(parser, args.out)
    return args


def main(argv=None):
    args = parse_args(argv)
    from mmclca.cli.commands import data_pipeline

    data_pipeline.main(args, argv)


if __name__ == '__main__':
    cli.run(main)
