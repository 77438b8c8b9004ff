# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Go back to the model before the last change by add-class, remove-class or
rename-class. A second call goes forward again.

``python -m mmclca undo MODEL``
"""

from mmclca.checkpoints.model_folder import ModelFolder

from .. import model_files
from ..listing import Listing

LISTING = Listing('fit and use', 'undo the last change of classes', 'fit')


def add_arguments(parser):
    parser.share('folder')


def main(args):
    ModelFolder.open(args.folder)
    with model_files.loading():
        from mmclca.fitting.fit_folder import FitFolder
        from mmclca.fitting.log import redirected_output
        from mmclca.fitting.undoing import undo_change
    with redirected_output():
        undo_change(FitFolder.open(args.folder))
