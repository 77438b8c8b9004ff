# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Figures and tables for which there are no results."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class MissingResultsError(ValueError):
    """There are no results of what a figure or a table shows."""


@contextmanager
def left_out_if_missing(name: str) -> Iterator[None]:
    """Warn where results are missing, and go on after the block.

    Args:
        name (str): What is left out then.
    """
    try:
        yield
    except MissingResultsError as error:
        # past this frame, contextlib's and that of the block
        warnings.warn(f'no {name}, results are missing: {error}', stacklevel=4)
