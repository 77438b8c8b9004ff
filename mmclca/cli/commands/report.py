# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write report.html of a model again, from its files and the photos.

``python -m mmclca report MODEL``
"""

from mmclca.checkpoints.model_folder import ModelFolder
from mmclca.utils.extras import require

from .. import model_files
from ..listing import Listing

LISTING = Listing('fit and use', 'write report.html again', 'report')


def add_arguments(parser):
    parser.share('folder')


def main(args):
    ModelFolder.open(args.folder)
    require('jinja2', 'matplotlib', extra='fit')
    with model_files.quiet():
        from mmclca.fitting.report import write_report

        print(f'Saved      {write_report(args.folder)}')
