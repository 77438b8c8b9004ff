# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Count the photos per class in a folder, as ``fit`` reads it.

python -m mmclca count-photos photos/
"""

from pathlib import Path

from mmclca.utils.messages import print_safe

from ..listing import Listing

LISTING = Listing('data', 'count the photos per class in a folder')


def add_arguments(parser):
    parser.add('folder', 'folder with one folder per class', type=Path)


def main(args):
    from mmclca.datasets.photos import read_photos

    photos = read_photos(args.folder)
    for name, count in sorted(photos.counts().items()):
        print_safe(f'{count:6} {name}')
    print_safe(f'{len(photos):6} photos, {len(photos.classes)} classes')
