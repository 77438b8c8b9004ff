# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Rename a class of a fitted model, or join it to another class.

``python -m mmclca rename-class MODEL NAME NEW``
"""

from ..changing import add_change_arguments, change_model
from ..listing import Listing

LISTING = Listing('fit and use', 'rename a class, or join two', 'fit')


def add_arguments(parser):
    parser.share('folder')
    parser.add('name', 'class name')
    parser.add('new', 'new name, or a class that the photos join')
    add_change_arguments(parser)


def main(args):
    change_model(
        args,
        lambda model, force: model.rename_class(args.name, args.new, force),
    )
