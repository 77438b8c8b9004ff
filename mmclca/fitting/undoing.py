# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Undo the last change of a model."""

from mmclca.errors import Error

from . import console_text
from .change_text import describe_restored
from .fit_folder import FitFolder
from .log import find_log
from .refitting import read_undamaged


def undo_change(files: FitFolder) -> None:
    """Exchange a model with the previous one, see :meth:`FittedModel.undo`."""
    with find_log() as log, files.locked():
        if not files.previous.model.is_file():
            raise Error(
                f'{files.path} has no previous model: no class was added, '
                'removed or renamed since fit'
            )
        record = read_undamaged(files.previous)
        exports = files.list_exports()
        log.open(files.log)
        files.exchange_previous()
        log.print_lines(console_text.format_facts([describe_restored(record)]))
        undo = 'back to the other model'
        console_text.print_saved(log, files.path, exports, undo)
