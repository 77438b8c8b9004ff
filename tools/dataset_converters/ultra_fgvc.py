# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fetch, check and convert the Ultra-FGVC data sets.

python tools/dataset_converters/ultra_fgvc.py download cotton80 --to data
python tools/dataset_converters/ultra_fgvc.py check data
python tools/dataset_converters/ultra_fgvc.py convert data \
    --dataset cotton80 --layout released --to unpacked
"""

import os

from mmclca import cli
from mmclca.cli.choices import LAYOUTS, SETS


def parse_args(argv):
    parser = cli.Parser(
        description='Fetch, check and convert the Ultra-FGVC data sets',
        epilog=f'Sets: {", ".join(SETS)}',
    )
    commands = parser.add_subparsers(dest='command', required=True)
    add_download(commands)
    add_check(commands)
    add_convert(commands)
    return parser.parse_args(argv)


def add_download(commands):
    parser = commands.add_parser(
        'download', help='fetch the parquet mirror; resumes where it stopped'
    )
    parser.add_argument('name', help='a set, or all')
    parser.add_argument('--to', required=True, help='folder for the files')
    parser.add_argument(
        '--revision', default='main', help='branch, tag or commit on the hub'
    )
    parser.add_argument(
        '--force', action='store_true', help='replace files that differ'
    )


def add_check(commands):
    parser = commands.add_parser(
        'check', help='find all sets in a folder and open every image'
    )
    parser.add_argument('folder')
    parser.add_argument('--dataset', help='look for this set only')
    parser.add_argument(
        '--jobs',
        type=int,
        default=min(8, os.cpu_count() or 1),
        help='processes that open images (default: %(default)s)',
    )
    parser.add_argument('--report', help='write what is wrong into this CSV')


def add_convert(commands):
    parser = commands.add_parser(
        'convert', help='write a set in another layout'
    )
    parser.add_argument('folder')
    parser.add_argument('--dataset', required=True)
    parser.add_argument('--layout', required=True, choices=LAYOUTS)
    parser.add_argument(
        '--to', required=True, help="folder in which the set's folder is made"
    )
    parser.add_argument(
        '--from-layout', choices=LAYOUTS, help='where there are more'
    )
    parser.add_argument(
        '--force', action='store_true', help="replace the set's folder"
    )
    parser.add_argument(
        '--partial',
        action='store_true',
        help='accept a set that is not complete',
    )


def main(argv=None):
    args = parse_args(argv)
    from mmclca.cli.commands import ultra_fgvc

    return ultra_fgvc.main(args)


if __name__ == '__main__':
    cli.run(main)
