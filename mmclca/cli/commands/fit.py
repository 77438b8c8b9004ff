# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train a classifier on photos: estimate its accuracy in seconds, fine-tune
with enough photos, write a model folder. Run the same command again to resume.

``python -m mmclca fit PHOTOS``
"""

from argparse import ArgumentParser
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from mmclca.fitting.options import FitOptions, get_spec
from mmclca.utils.messages import print_safe

from .. import model_files
from ..listing import Listing

LISTING = Listing(
    'fit and use', 'train a classifier (one folder of photos per class)', 'fit'
)


def add_arguments(parser):
    parser.advice = 'Run the same command to resume.'
    parser.add(
        'photos',
        'folder with one folder per class, or with train, val, test folders',
        type=Path,
    )
    out = 'model folder to write'
    parser.add('--out MODEL', out, Path('model'), type=Path)
    # by the names of options that exclude each other
    groups = {}
    for item in fields(FitOptions):
        excluded = get_spec(item).excludes
        if item.name == 'device':
            parser.share('--device')
        elif item.name == 'budget':
            group = parser.add_mutually_exclusive_group()
            add_option(group, item)
            group.add_argument(
                '--best',
                action='store_const',
                const='best',
                dest='budget',
                help='full ViT without a cost limit, same as --budget best',
            )
        elif excluded:
            names = frozenset({item.name, excluded})
            if names not in groups:
                groups[names] = parser.add_mutually_exclusive_group()
            add_option(groups[names], item)
        else:
            add_option(parser, item)


def add_option(parser: ArgumentParser, item: Field) -> None:
    """Add an option of ``fit`` to a parser or a group."""
    spec, default = get_spec(item), item.default
    settings: dict[str, Any] = dict(help=spec.help, default=default)
    if isinstance(default, bool):
        settings['action'] = 'store_true'
    elif isinstance(default, int):
        settings['type'] = int
        settings['help'] += ' (default: %(default)s)'
    elif spec.choices:
        settings['choices'] = spec.choices
    elif spec.metavar:
        settings['metavar'] = spec.metavar
    if spec.is_repeatable:
        settings['action'] = 'append'
    parser.add_argument(f'--{item.name.replace("_", "-")}', **settings)


def main(args):
    with model_files.loading():
        from mmclca.datasets.photos import read_photos
    # before torch, whose import takes seconds
    photos = read_photos(args.photos, args.labels, args.groups)
    if args.verbose:
        print_safe(f'Reading    {len(photos):,} photos in {args.photos}')
    with model_files.loading():
        from mmclca.fitting import fit
        from mmclca.fitting.log import redirected_output
    with redirected_output():
        fit(**vars(args))
