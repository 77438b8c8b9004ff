# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write the report of a model: ``python -m mmclca report MODEL``."""

from mmclca.checkpoints.fitted import model_file
from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import add_folder

report = lazy('mmclca.fitting.report')


def parse_args():
    parser = Parser(
        description='Write report.html of a model again, from what fit wrote '
        'and the photographs'
    )
    add_folder(parser)
    return parser.parse_args()


def main(args):
    with plain_errors():
        model_file(args.folder)
        print(report.write_report(args.folder))
