# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Iterator
from contextlib import contextmanager

from mmengine.logging import logger

UNUSED = 'Could not import OneDL'


@contextmanager
def hide_unused_service() -> Iterator[None]:
    """Hide a line that MMPretrain prints when its datasets are imported.

    It is about a cloud service that no command needs. Only ``print`` in the
    module that prints it is replaced, and only in this context.
    """

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
