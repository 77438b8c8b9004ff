# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Add a class to a fitted model, or more photos of a class, in seconds: the
classifier is refitted, the backbone does not change.

``python -m mmclca add-class MODEL FOLDER``
"""

from pathlib import Path

from .. import model_files
from ..changing import add_change_arguments, change_model
from ..listing import Listing

LISTING = Listing(
    'fit and use', 'add a class, or photos of a class, in seconds', 'fit'
)


def add_arguments(parser):
    parser.share('folder')
    photos = 'folder of photos of one class, or ZIP of the phone app'
    parser.add('photos', photos, type=Path)
    parser.add('--name', 'class name (default: folder name)')
    add_change_arguments(parser)


def main(args):
    model_files.check_order(str(args.folder), [str(args.photos)])
    change_model(
        args,
        lambda model, force: model.add_class(args.photos, args.name, force),
    )
