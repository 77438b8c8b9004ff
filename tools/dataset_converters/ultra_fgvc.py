# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fetch, check and convert the Ultra-FGVC data sets.

python tools/dataset_converters/ultra_fgvc.py download cotton80 --to data
python tools/dataset_converters/ultra_fgvc.py check data
python tools/dataset_converters/ultra_fgvc.py convert data \
    --dataset cotton80 --layout released --to unpacked
"""

import argparse
import csv
import os
import sys
from pathlib import Path

from mmclca.datasets.ultra_fgvc.convert import convert
from mmclca.datasets.ultra_fgvc.download import DownloadError, download
from mmclca.datasets.ultra_fgvc.info import SETS, get_info
from mmclca.datasets.ultra_fgvc.layouts import READERS
from mmclca.datasets.ultra_fgvc.places import find_sources, not_found
from mmclca.datasets.ultra_fgvc.verify import Bad, find_sets, verify

SHOWN = 20
COLUMNS = (
    'set',
    'layout',
    'split',
    'classes',
    'images',
    'expected',
    'missing',
    'unreadable',
)


def parse_args(argv):
    parser = argparse.ArgumentParser(
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
        'download', help='fetch the parquet mirror; goes on where it stopped'
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
    parser.add_argument('--layout', required=True, choices=sorted(READERS))
    parser.add_argument(
        '--to', required=True, help="folder in which the set's folder is made"
    )
    parser.add_argument(
        '--from-layout', choices=sorted(READERS), help='where there are more'
    )
    parser.add_argument(
        '--force', action='store_true', help="replace the set's folder"
    )
    parser.add_argument(
        '--partial',
        action='store_true',
        help='accept a set that is not complete',
    )


def run_download(name, folder, revision, force):
    infos = SETS.values() if name == 'all' else [get_info(name)]
    # The whole of SoyAgeing is its stages; `all` names those too.
    parts = {part.name: part for info in infos for part in info.parts}
    for part in parts.values():
        path = download(part, folder, revision, force)
        print(f'{part.title}: {path} is whole, its checksum is right')
    return 0


def run_check(folder, dataset, jobs, report):
    info = get_info(dataset) if dataset else None
    if not Path(folder).exists():
        raise FileNotFoundError(f'{folder} does not exist')
    found = find_sets(folder, info)
    if not found:
        raise FileNotFoundError(
            not_found(folder, info)
            if info
            else f'No Ultra-FGVC set was recognized in {folder}. Name the one '
            f'that it should hold: --dataset {{{",".join(SETS)}}}'
        )
    rows, bad = [], []
    for set_info, source in found:
        print(f'{set_info.title}: {source}', file=sys.stderr)
        new_rows, new_bad = verify(source, set_info, jobs)
        rows += new_rows
        bad += new_bad
    print_table(rows)
    print_bad(bad)
    if report:
        write_report(bad, report)
    wrong = bad or not all(row.good for row in rows)
    print(
        'Something is wrong: bad files, or counts that differ from expected.'
        if wrong
        else 'All is well.'
    )
    return int(bool(wrong))


def print_table(rows):
    cells = [COLUMNS] + [
        (
            *row[:5],
            '{} / {}'.format(*('?' if n is None else n for n in row.expected)),
            *row[6:],
        )
        for row in rows
    ]
    widths = [
        max(len(str(c)) for c in column) for column in zip(*cells, strict=True)
    ]
    for line in cells:
        pairs = zip(line, widths, strict=True)
        line = '  '.join(str(cell).ljust(width) for cell, width in pairs)
        print(line.rstrip())


def print_bad(bad):
    for item in bad[:SHOWN]:
        print(f'{item.dataset}, {item.split or "lists"}: {item.path}')
        print(f'    {item.problem}')
    if len(bad) > SHOWN:
        print(f'... and {len(bad) - SHOWN} more; --report lists all')


def write_report(bad, path):
    with open(path, 'w', newline='') as file:
        csv.writer(file).writerows([Bad._fields, *bad])
    print(f'{len(bad)} lines in {path}')


def run_convert(folder, dataset, layout, to, from_layout, force, partial):
    info = get_info(dataset)
    sources = find_sources(folder, info, from_layout)
    if not sources:
        raise FileNotFoundError(not_found(folder, info))
    print(f'{info.title}: {sources[0]}', file=sys.stderr)
    target = convert(
        sources[0], info, layout, to, force=force, counts=not partial
    )
    print(f'{info.title}: {layout} layout in {target}')
    return 0


def run(args):
    if args.command == 'download':
        return run_download(args.name, args.to, args.revision, args.force)
    if args.command == 'check':
        return run_check(args.folder, args.dataset, args.jobs, args.report)
    return run_convert(
        args.folder,
        args.dataset,
        args.layout,
        args.to,
        args.from_layout,
        args.force,
        args.partial,
    )


def main(argv=None):
    try:
        return run(parse_args(argv))
    except (DownloadError, OSError, ValueError, ImportError) as error:
        print(f'error: {error}', file=sys.stderr)
        return 1


if __name__ == '__main__':
    sys.exit(main())
