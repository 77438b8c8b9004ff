# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Add a class to a model of fit, or more photos of a class, in seconds: the
classifier is refitted, the backbone does not change.

``python -m mmclca add-class MODEL FOLDER``
"""

from pathlib import Path

from mmclca.checkpoints.fitted import model_file

from .. import Parser, model_files, usage_errors
from ..packages import fitting


def parse_args():
    parser = Parser(__doc__)
    parser.share('folder')
    photographs = 'folder of photos of one class'
    parser.add('photographs', photographs, type=Path)
    parser.add('--name', 'class name (default: folder name)')
    parser.share('--device')
    return parser.parse_args()


def main(args):
    with usage_errors():
        model_files.check_order(str(args.folder), [str(args.photographs)])
        model_file(args.folder)
        with model_files.loading():
            model = fitting.FittedModel(args.folder, args.device)
        with fitting.log.redirected_output():
            model.add_class(args.photographs, args.name)
