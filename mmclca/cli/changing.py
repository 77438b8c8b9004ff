# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Change a model by a command, and ask before a probable mistake."""

import sys
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from mmclca.checkpoints.model_folder import ModelFolder
from mmclca.errors import Error
from mmclca.utils.messages import print_safe

from . import model_files
from .arguments import Parser

if TYPE_CHECKING:
    from mmclca.fitting import FittedModel

Change = Callable[['FittedModel', bool], None]


def add_change_arguments(parser: Parser) -> None:
    """Add the options to change a model."""
    parser.flag(
        '--yes', 'change without a question, even if the accuracy falls a lot'
    )
    parser.share('--device')


def change_model(args: Namespace, change: Change) -> None:
    """Change a model; ask on a terminal if the change needs a confirmation.

    Args:
        args (Namespace): Arguments, with ``folder``, ``device`` and ``yes``.
        change (Callable): Function of the model, and whether to change it
            without a confirmation.

    Raises:
        Error: If the change is not confirmed. The model does not change.
    """
    ModelFolder.open(args.folder)
    with model_files.loading():
        from mmclca.fitting import FittedModel
        from mmclca.fitting.confirmation import ConfirmationError
        from mmclca.fitting.log import redirected_output
    model = FittedModel(args.folder, args.device)
    try:
        with redirected_output():
            change(model, args.yes)
    except ConfirmationError as error:
        if not ask(error.reason):
            raise Error(
                f'{error.reason}; the model did not change; add --yes to '
                'change it'
            ) from None
        with redirected_output():
            change(model, True)


def ask(reason: str) -> bool:
    """Ask on a terminal whether to continue; without one, the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print_safe(f'Warning    {reason}', file=sys.stderr)
    try:
        answer = input('Change the model anyway? [y/N] ')
    except EOFError:  # Ctrl-D
        return False
    return answer.strip().lower() in ('y', 'yes')
