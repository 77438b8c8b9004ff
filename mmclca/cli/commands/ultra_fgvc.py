# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fetch, check and import the Ultra-FGVC data sets.

python tools/dataset_converters/ultra_fgvc.py download cotton80 --to data
python tools/dataset_converters/ultra_fgvc.py import data \
    --dataset cotton80 --to data/cotton80
python tools/dataset_converters/ultra_fgvc.py check data --dataset cotton80
"""

from collections import Counter

from mmclca.utils.messages import say

from .. import Parser, plain_errors
from ..packages import datasets


def parse_args():
    parser = Parser(
        description='Fetch, check and import the Ultra-FGVC data sets'
    )
    commands = parser.add_subparsers(dest='command', required=True)
    fetch = commands.add_parser(
        'download', help='fetch the parquet mirror; resumes where it stopped'
    )
    fetch.add('dataset', 'a set, such as cotton80, or all')
    fetch.add('--to', 'folder for the files', required=True)
    fetch.add('--revision', 'branch, tag or commit on the hub', 'main')
    check = commands.add_parser(
        'check', help='count the images of a set and decode each'
    )
    add_set(check)
    take = commands.add_parser(
        'import',
        help='write a set as images and CSV lists, from image folders, '
        'parquet files or any other form; each image is decoded',
    )
    add_set(take)
    take.add('--to', 'folder to make, such as data/cotton80', required=True)
    return parser.parse_args()


def add_set(parser):
    parser.add('folder', 'has the set, or is a parquet file')
    parser.add('--dataset', 'a set, such as cotton80', required=True)
    parser.flag('--partial', 'accept a set that is not complete')


def run_download(dataset, to, revision):
    info, importing = datasets.ultra_fgvc.info, datasets.ultra_fgvc.importing
    sets = info.SETS.values() if dataset == 'all' else [info.get_info(dataset)]
    # SoyAgeing consists of its stages, which `all` names too
    for part in {part.name: part for one in sets for part in one.parts}:
        say(f'Saved      {importing.download(info.SETS[part], to, revision)}')


def run_check(folder, dataset, partial, to=None):
    info = datasets.ultra_fgvc.info.get_info(dataset)
    found = datasets.ultra_fgvc.places.find_set(folder, info)
    importing = datasets.ultra_fgvc.importing
    if to:
        images = importing.import_set(found, info, to, not partial)
    else:
        images = importing.check_set(found, info, not partial)
    counts = Counter(image.split for image in images)
    classes = len({image.class_name for image in images})
    listed = ', '.join(f'{number} {name}' for name, number in counts.items())
    say(f'Found      {found}')
    say(f'Data       {classes} classes, images: {listed}, all readable')
    if to:
        say(f'Saved      {to}')


COMMANDS = {'download': run_download, 'check': run_check, 'import': run_check}


def main(args):
    options = dict(vars(args))
    command = options.pop('command')
    with plain_errors(command):
        COMMANDS[command](**options)
