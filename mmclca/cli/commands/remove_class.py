# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Remove a class from a fitted model in seconds: the classifier is refitted,
the backbone does not change. No photo is deleted.

``python -m mmclca remove-class MODEL NAME``
"""

from ..changing import add_change_arguments, change_model
from ..listing import Listing

LISTING = Listing('fit and use', 'remove a class', 'fit')


def add_arguments(parser):
    parser.share('folder')
    parser.add('name', 'class name')
    add_change_arguments(parser)


def main(args):
    change_model(
        args, lambda model, force: model.remove_class(args.name, force)
    )
