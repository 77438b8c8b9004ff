# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

UNUSED = 'Could not import OneDL'


@contextmanager
def hide_unused_service() -> Iterator[None]:
    """Hide a line that MMPretrain prints when its datasets are imported.

    It is about a cloud service that no command needs. Only ``print`` in the
    module that prints it is replaced, and only in this context.
    """
    from mmengine.logging import logger

    def print_others(message):
        if message != UNUSED:
            print(message)

    before = vars(logger).get('print')  # of an outer context
    logger.print = print_others
    try:
        yield
    finally:
        if before:
            logger.print = before
        else:
            del logger.print


def silence_libraries() -> None:
    """Hide what libraries report to the whole process and no user needs.

    Only for a process of this package: a warning of mmcv about operators that
    are not compiled, those of Pillow about damaged photos, and errors of a
    log file on a full disk.
    """
    message = 'Fail to import ``MultiScaleDeformableAttention``'
    warnings.filterwarnings('ignore', message)
    warnings.filterwarnings('ignore', module='PIL')
    logging.raiseExceptions = False
