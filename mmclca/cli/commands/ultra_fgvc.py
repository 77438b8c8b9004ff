# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Download, check and import the Ultra-FGVC datasets.

python tools/dataset_converters/ultra_fgvc.py download cotton80 --to data
python tools/dataset_converters/ultra_fgvc.py import data \
    --dataset cotton80 --to data/cotton80
python tools/dataset_converters/ultra_fgvc.py check data --dataset cotton80
"""

from collections import Counter

from mmclca.utils.messages import print_safe

from ..listing import Listing

LISTING = Listing(
    'data', 'download and import the Ultra-FGVC datasets', 'data_sets'
)


def add_arguments(parser):
    commands = parser.add_subparsers(dest='command', required=True)
    fetch = commands.add_parser(
        'download', help='download of the parquet mirror, resumable'
    )
    fetch.add('dataset', 'dataset, such as cotton80, or all')
    fetch.add('--to', 'output folder', required=True)
    fetch.add('--revision', 'branch, tag or commit on the hub', 'main')
    check = commands.add_parser(
        'check', help='image counts of a dataset; each image is decoded'
    )
    add_dataset(check)
    take = commands.add_parser(
        'import',
        help='import of a dataset as images and CSV lists; each image is '
        'decoded',
    )
    add_dataset(take)
    take.add('--to', 'output folder, such as data/cotton80', required=True)


def add_dataset(parser):
    parser.add('folder', 'folder with the dataset, or parquet file')
    parser.add('--dataset', 'dataset, such as cotton80', required=True)
    parser.flag('--partial', 'incomplete dataset allowed')


def run_download(dataset, to, revision):
    from mmclca.datasets.ultra_fgvc.importing import download
    from mmclca.datasets.ultra_fgvc.info import SETS, get_info

    sets = SETS.values() if dataset == 'all' else [get_info(dataset)]
    # SoyAgeing consists of growth stages, which `all` lists as well
    for name in dict.fromkeys(part.name for x in sets for part in x.parts):
        print_safe(f'Saved      {download(SETS[name], to, revision)}')


def run_check(folder, dataset, partial, to=None):
    from mmclca.datasets.ultra_fgvc.importing import find_set, import_set
    from mmclca.datasets.ultra_fgvc.info import get_info

    info = get_info(dataset)
    published = find_set(folder, info)
    images = import_set(published, info, to, partial)
    counts = Counter(image.split for image in images)
    classes = len({image.class_name for image in images})
    splits = ', '.join(f'{number} {name}' for name, number in counts.items())
    print_safe(f'Found      {published}')
    print_safe(f'Data       {classes} classes, images: {splits}, all readable')
    if to:
        print_safe(f'Saved      {to}')


COMMANDS = {'download': run_download, 'check': run_check, 'import': run_check}


def main(args):
    options = dict(vars(args))
    command = options.pop('command')
    COMMANDS[command](**options)
