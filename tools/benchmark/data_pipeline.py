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
from mmclca.cli.arguments import add_cfg_options, check_file, positive, whole


def parse_args():
    parser = cli.Parser(
        description=__doc__.partition('\n\n')[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add('config', 'path or name of a config')
    parser.add(
        '--workers',
        'processes that load',
        [0, 2, 4],
        nargs='+',
        type=whole,
        metavar='N',
    )
    parser.add('--epochs', 'epochs after the first', 5, type=positive)
    parser.add('--out', 'write the table to a Markdown page', type=Path)
    add_cfg_options(parser)
    args = parser.parse_args()
    if args.out:
        check_file(parser, args.out)
    return args


main = cli.command('data_pipeline', parse_args)

if __name__ == '__main__':
    cli.run(main)
