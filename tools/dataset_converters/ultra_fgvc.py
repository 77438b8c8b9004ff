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


def parse_args(argv=None):
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
    parser.add('name', 'a set, or all')
    parser.add('--to', 'folder for the files', required=True)
    parser.add('--revision', 'branch, tag or commit on the hub', 'main')
    parser.flag('--force', 'replace files that differ')


def add_check(commands):
    parser = commands.add_parser(
        'check', help='find all sets in a folder and open every image'
    )
    parser.add_argument('folder')
    parser.add('--dataset', 'look for this set only')
    parser.add(
        '--jobs',
        'processes that open images',
        min(8, os.cpu_count() or 1),
        type=int,
    )
    parser.add('--report', 'write what is wrong into this CSV')


def add_convert(commands):
    parser = commands.add_parser(
        'convert', help='write a set in another layout'
    )
    parser.add_argument('folder')
    parser.add_argument('--dataset', required=True)
    parser.add_argument('--layout', required=True, choices=LAYOUTS)
    parser.add(
        '--to', "folder in which the set's folder is made", required=True
    )
    parser.add('--from-layout', 'where there are more', choices=LAYOUTS)
    parser.flag('--force', "replace the set's folder")
    parser.flag('--partial', 'accept a set that is not complete')


main = cli.command('ultra_fgvc', parse_args)

if __name__ == '__main__':
    cli.run(main)
