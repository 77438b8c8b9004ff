# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write the report of a model: ``mmclca report MODEL``."""

from .. import Parser, command
from .model import add_folder, model_of


def parse_args():
    parser = Parser(
        description='Write report.html of a model again, from what fit wrote '
        'and the photographs'
    )
    add_folder(parser)
    args = parser.parse_args()
    model_of(parser, args.folder)
    return args


main = command('report', parse_args)
