# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fetch, check and convert the Ultra-FGVC data sets.

python tools/dataset_converters/ultra_fgvc.py download cotton80 --to data
python tools/dataset_converters/ultra_fgvc.py check data
python tools/dataset_converters/ultra_fgvc.py convert data \
    --dataset cotton80 --layout released --to unpacked
"""

import os
import sys
from pathlib import Path

from mmclca.utils.lazy import lazy
from mmclca.utils.terminal import say

from .. import Parser, plain_errors

pd = lazy('pandas')
csv_files = lazy('mmclca.utils.csv_files')
convert = lazy('mmclca.datasets.preparation.convert')
download = lazy('mmclca.datasets.preparation.download')
verify = lazy('mmclca.datasets.preparation.verify')
info = lazy('mmclca.datasets.ultra_fgvc.info')
places = lazy('mmclca.datasets.ultra_fgvc.places')

SHOWN = 20


def parse_args():
    parser = Parser(
        description='Fetch, check and convert the Ultra-FGVC data sets'
    )
    commands = parser.add_subparsers(dest='command', required=True)
    add_download(commands)
    add_check(commands)
    add_convert(commands)
    return parser.parse_args()


def add_download(commands):
    parser = commands.add_parser(
        'download', help='fetch the parquet mirror; resumes where it stopped'
    )
    parser.add('name', 'a set, such as cotton80, or all')
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
    layouts = 'csv, folders, parquet or released'
    parser.add('--layout', layouts, required=True)
    parser.add(
        '--to', "folder in which the set's folder is made", required=True
    )
    parser.add('--from-layout', 'where there are more')
    parser.flag('--force', "replace the set's folder")
    parser.flag('--partial', 'accept a set that is not complete')


def run_download(name, to, revision, force):
    infos = info.SETS.values() if name == 'all' else [info.get_info(name)]
    # The whole of SoyAgeing is its stages; `all` names those too.
    parts = {part.name: part for info in infos for part in info.parts}
    for part in parts.values():
        path = download.download(part, to, revision, force)
        print(f'{part.title}: {path} is whole, its checksum is right')
    return 0


def run_check(folder, dataset, jobs, report):
    wanted = info.get_info(dataset) if dataset else None
    if not Path(folder).exists():
        raise FileNotFoundError(f'{folder} does not exist')
    found = verify.find_sets(folder, wanted)
    if not found:
        raise FileNotFoundError(
            places.not_found(folder, wanted)
            if wanted
            else f'No Ultra-FGVC set was recognized in {folder}. Name the one '
            f'that it should hold: --dataset {{{",".join(info.SETS)}}}'
        )
    rows, bad = [], []
    for set_info, source in found:
        print(f'{set_info.title}: {source}', file=sys.stderr)
        new_rows, new_bad = verify.verify(source, set_info, jobs)
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
    table = pd.DataFrame(rows).rename(columns=dict(dataset='set'))
    table['expected'] = [
        ' / '.join('?' if n is None else str(n) for n in row.expected)
        for row in rows
    ]
    say(*table.to_string(index=False).splitlines())


def print_bad(bad):
    for item in bad[:SHOWN]:
        say(f'{item.dataset}, {item.split or "lists"}: {item.path}')
        say(f'    {item.problem}')
    if len(bad) > SHOWN:
        print(f'... and {len(bad) - SHOWN} more; --report lists all')


def write_report(bad, path):
    csv_files.write_rows(path, [verify.Bad._fields, *bad])
    print(f'{len(bad)} lines in {path}')


def run_convert(folder, dataset, layout, to, from_layout, force, partial):
    wanted = info.get_info(dataset)
    sources = places.find_sources(folder, wanted, from_layout)
    if not sources:
        raise FileNotFoundError(places.not_found(folder, wanted))
    print(f'{wanted.title}: {sources[0]}', file=sys.stderr)
    target = convert.convert(
        sources[0], wanted, layout, to, force=force, counts=not partial
    )
    print(f'{wanted.title}: {layout} layout in {target}')
    return 0


COMMANDS = dict(download=run_download, check=run_check, convert=run_convert)


def main(args):
    options = dict(vars(args))
    command = options.pop('command')
    with plain_errors(command):
        return COMMANDS[command](**options)
