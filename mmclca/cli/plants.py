# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Plants in the photos of a command, and how their photos are combined."""

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.messages import join_first, print_safe, warn

DEFAULT = 'default; fit with --groups measures it if plants have photos'
PER_PHOTO = ('sure', 'tokens')  # options for results of single photos


def add_plant_arguments(parser) -> None:
    """Add ``--plant`` and ``--labels``."""
    parser.add(
        '--plant REGEX',
        'one result per plant, named by the match in the path, or by a column '
        'of --labels',
    )
    parser.add(
        '--labels TABLE',
        'table of files and plants: .csv, .tsv, .xlsx or .ods',
        type=Path,
    )


def check_plant_arguments(args: Namespace) -> None:
    """Refuse options that do not fit together."""
    if args.labels and not args.plant:
        raise Error('`labels` needs `plant=COLUMN`, the column of plants')
    for name in PER_PHOTO:
        if args.plant and getattr(args, name):
            raise Error(
                f'`{name}` applies to single photos; omit it or `plant`'
            )


def name_plants(args: Namespace, paths: Sequence[str]) -> list[str] | None:
    """Return the plant of each photo; None without ``--plant``.

    Photos without one are named in a warning.
    """
    if args.plant is None:
        return None
    from mmclca.datasets.photos.plants import find_plants

    folder = find_common_folder(args.images, paths)
    plants = find_plants(paths, folder, args.plant, args.labels)
    if plants.without:
        warn(
            f'{len(plants.without)} of {len(paths)} photos have no plant, '
            f'such as {join_first(plants.without, 3)}: each is a plant of '
            'its own'
        )
    return plants.names


def find_common_folder(places: Sequence[str], paths: Sequence[str]) -> str:
    """Return the folder of all photos and of all named folders."""
    folders = [os.path.abspath(x) for x in places if os.path.isdir(x)]
    parents = [os.path.dirname(os.path.abspath(path)) for path in paths]
    return os.path.commonpath([*folders, *parents])


def combine_plants(
    args: Namespace,
    results: Sequence[dict],
    plants: Sequence[str] | None,
    inferencer,
) -> Sequence[dict]:
    """Return one result per plant; without plants the results of photos.

    Interrupted runs have no results for the last photos.
    """
    if plants is None or not results:
        return results
    from mmclca.apis.plants import combine_results
    from mmclca.fitting.plants import read_dependence

    dependence = read_dependence(args.checkpoint)
    source = 'measured by fit' if dependence.is_measured else DEFAULT
    print_safe(
        f'Photos of a plant are combined with dependence '
        f'{dependence.value:.2f} ({source})',
        file=sys.stderr,
    )
    return combine_results(
        results,
        plants[: len(results)],
        inferencer.classes,
        dependence.value,
        inferencer.threshold,
    )


def describe_source(result: dict) -> str:
    """Describe what a result is about: an image, or a plant."""
    if 'plant' not in result:
        return result['image']
    number = len(result['images'])
    return f'{result["plant"]} ({number} photo{"s" * (number != 1)})'
