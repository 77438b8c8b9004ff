# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Progress bars, where somebody can see them."""

from collections.abc import Iterable

from mmpretrain.utils import track as draw_bar
from rich import get_console


def track(
    sequence: Iterable, description: str = '', total: float | None = None
) -> Iterable:
    """Go through a sequence; with MMPretrain's bar on a terminal or notebook.

    Into a file nothing is written.
    """
    console = get_console()
    if console.is_terminal or console.is_jupyter:
        return draw_bar(sequence, description, total)
    return iter(sequence)
