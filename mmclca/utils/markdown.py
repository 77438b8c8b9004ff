# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Rows of Markdown tables."""

from collections.abc import Iterable, Sequence


def format_row(cells: Iterable) -> str:
    """Format cells as a row of a Markdown table."""
    return f'| {" | ".join(map(str, cells))} |'


def format_head(titles: Sequence[str]) -> list[str]:
    """Format titles as the first two rows of a Markdown table."""
    return [format_row(titles), format_row(['---'] * len(titles))]
