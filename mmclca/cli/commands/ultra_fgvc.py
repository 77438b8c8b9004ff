# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/dataset_converters/ultra_fgvc.py`` does."""

import sys
from pathlib import Path

from mmclca.datasets.preparation.convert import convert
from mmclca.datasets.preparation.download import download
from mmclca.datasets.preparation.verify import Bad, Row, find_sets, verify
from mmclca.datasets.ultra_fgvc.info import SETS, get_info
from mmclca.datasets.ultra_fgvc.places import find_sources, not_found
from mmclca.utils.csv_files import write_rows
from mmclca.utils.terminal import say

from .. import plain_errors

SHOWN = 20


def run_download(name, to, revision, force):
    infos = SETS.values() if name == 'all' else [get_info(name)]
    # The whole of SoyAgeing is its stages; `all` names those too.
    parts = {part.name: part for info in infos for part in info.parts}
    for part in parts.values():
        path = download(part, to, revision, force)
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
    table = [['set', *Row._fields[1:]]]
    for row in rows:
        classes, images = ('?' if n is None else n for n in row.expected)
        cells = *row[:5], f'{classes} / {images}', *row[6:]
        table.append([str(cell) for cell in cells])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        say('  '.join(map(str.ljust, line, widths)).rstrip())


def print_bad(bad):
    for item in bad[:SHOWN]:
        say(f'{item.dataset}, {item.split or "lists"}: {item.path}')
        say(f'    {item.problem}')
    if len(bad) > SHOWN:
        print(f'... and {len(bad) - SHOWN} more; --report lists all')


def write_report(bad, path):
    write_rows(path, [Bad._fields, *bad])
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


COMMANDS = dict(download=run_download, check=run_check, convert=run_convert)


def main(args):
    options = dict(vars(args))
    command = options.pop('command')
    with plain_errors(command):
        return COMMANDS[command](**options)
