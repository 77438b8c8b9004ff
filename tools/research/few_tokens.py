# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Few photos, few tokens: each reducer on frozen networks, and rivals.

Extracts features, and writes the table docs/results/few_tokens.csv. This
takes hours on one core; a stopped program continues. ``MMCLCA_DATA``,
``MMCLCA_WEIGHTS`` and ``MMCLCA_FEATURES`` are the folders with datasets,
weights and features (15 GB).
"""

from importlib import import_module
from time import perf_counter

import torch
from frozen import read_dataset
from mmengine.logging import MMLogger
from study.features import Extraction, find_crops, find_file
from study.networks import GRID, list_networks
from study.readings import FIT
from study.rows import KEYS, STUDY, find_full, identify, list_wanted, measure
from study.splits import find_difference
from study.times import add_times, time_networks
from tables import kept, read, select, write

from mmclca import cli
from mmclca.errors import Error


def find_datasets():
    """Return the dataset names; print missing ones."""
    names = []
    for name in GRID['datasets']:
        try:
            read_dataset(name)
        except (Error, OSError) as error:
            print(f'Without dataset {name}: {error}', flush=True)
        else:
            names.append(name)
            difference = find_difference(name)
            if difference:
                print(f'Dataset {name}: {difference}', flush=True)
    return names


@torch.inference_mode()
def extract(network, names, classifier):
    """Write missing features for a classifier; print problems."""
    start, extraction = perf_counter(), Extraction(network)
    steps = [(find_file, extraction.extract)]
    if classifier == FIT:
        steps.append((find_crops, extraction.extract_crops))
    missing = [
        (step, name)
        for find, step in steps
        for name in names
        if not find(network, name).exists()
    ]
    try:
        for step, name in missing:
            step(name)
    except (Error, OSError) as error:
        print(f'Without {network.name}: {error}', flush=True)
        return
    if missing:
        seconds = perf_counter() - start
        print(f'{network.name}: {seconds:.0f} s', flush=True)


def is_extracted(network, names):
    """Return whether features for all datasets are stored, also full ones."""
    networks = network, find_full(network)
    return all(find_file(x, name).exists() for x in networks for name in names)


def main():
    parser = cli.Parser(description=__doc__)
    which = 'reducers (default: all)'
    parser.add('--methods', which, nargs='+', default=())
    which = 'modules to import, which register other reducers'
    parser.add('--imports', which, nargs='+', default=())
    parser.flag('--stored', 'extract nothing, use the stored features')
    parser.flag('--times', 'measure milliseconds, on an idle machine')
    parser.add('--threads', 'threads', 1, type=int)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    MMLogger.get_current_instance().setLevel('ERROR')
    for module in args.imports:
        import_module(module)
    networks, names = list_networks(args.methods), find_datasets()
    table = measure_networks(networks, names, args.stored)
    if args.times:
        time_networks(networks)
    missing = [x for x in networks if select(table, identify(x)).empty]
    if len(table):
        write(STUDY, add_times(table))
    if args.methods:
        print_methods(table, args.methods)
    print(f'{len(networks) - len(missing)} networks, {len(missing)} missing')


def measure_networks(networks, names, is_stored):
    """Return the table; measure missing networks."""
    table = read(STUDY)
    for network, classifier in list_measured(networks):
        is_needed = network == find_full(network)  # by other networks
        if not is_stored and (
            is_needed or lacks_row(table, network, classifier)
        ):
            extract(network, names, classifier)
        if is_extracted(network, names):
            table = kept(STUDY, measure, list_wanted(network, names))
    return table


def list_measured(networks):
    """List networks and classifiers: first, each network without crops."""
    candidates = [(x, FIT) for x in networks if x.is_candidate]
    return [(x, 'ridge') for x in networks] + candidates


def lacks_row(table, network, classifier):
    """Return whether a network lacks the row of a classifier."""
    keys = dict(identify(network), classifier=classifier)
    return table.empty or select(table, keys).empty


def print_methods(table, methods):
    """Print the most important columns for some methods."""
    rows = table[table.method.isin([*methods]) & (table.img_size == 224)]
    columns = 'features', 'gmacs', 'mean', 'difference', 'half_width'
    rows = rows[[*KEYS, *columns, 'agreement', 'untrained']]
    print(rows.to_string(index=False))


if __name__ == '__main__':
    cli.run(main)
