# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Add a class to a fitted model, or more photos of a class, in seconds: the
classifier is refitted, the backbone does not change.

``python -m mmclca add-class MODEL FOLDER``
"""

import sys
from pathlib import Path

from mmclca.checkpoints.model_folder import ModelFolder
from mmclca.errors import Error
from mmclca.utils.messages import print_safe

from .. import model_files
from ..listing import Listing

LISTING = Listing(
    'fit and use', 'add a class, or photos of a class, in seconds', 'fit'
)


def add_arguments(parser):
    parser.share('folder')
    photos = 'folder of photos of one class'
    parser.add('photos', photos, type=Path)
    parser.add('--name', 'class name (default: folder name)')
    parser.flag(
        '--yes', 'add without a question, even if the accuracy falls a lot'
    )
    parser.share('--device')


def main(args):
    model_files.check_order(str(args.folder), [str(args.photos)])
    ModelFolder.open(args.folder)
    with model_files.loading():
        from mmclca.fitting import FittedModel
        from mmclca.fitting.confirmation import ConfirmationError
    model = FittedModel(args.folder, args.device)
    try:
        add(model, args, args.yes)
    except ConfirmationError as error:
        if not ask(error.reason):
            raise Error(
                f'{error.reason}; the model did not change; add --yes to '
                'change it'
            ) from None
        add(model, args, force=True)


def add(model, args, force):
    from mmclca.fitting.log import redirected_output

    with redirected_output():
        model.add_class(args.photos, args.name, force)


def ask(reason):
    """Ask on a terminal whether to continue; without one, the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print_safe(f'Warning    {reason}', file=sys.stderr)
    try:
        answer = input('Change the model anyway? [y/N] ')
    except EOFError:  # Ctrl-D
        return False
    return answer.strip().lower() in ('y', 'yes')
