# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Figures and tables for which there are no results."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class LackingResultsError(ValueError):
    """The results lack all that a figure or a table shows."""


@contextmanager
def left_out_if_lacking(name: str) -> Iterator[None]:
    """Warn where results are lacking, and go on after the block.

    Args:
        name (str): What is left out then.
    """
    try:
        yield
    except LackingResultsError as error:
        # past this frame, contextlib's and that of the block
        warnings.warn(f'no {name}, the results lack: {error}', stacklevel=4)
