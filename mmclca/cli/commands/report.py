# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write report.html of a model again, from its files and the photos.

``python -m mmclca report MODEL``
"""

from mmclca.checkpoints.fitted import model_file

from .. import Parser, model_files, usage_errors
from ..packages import fitting


def parse_args():
    parser = Parser(__doc__)
    parser.share('folder')
    return parser.parse_args()


def main(args):
    with usage_errors():
        model_file(args.folder)
        with model_files.quiet():
            print(f'Saved      {fitting.report.write_report(args.folder)}')
