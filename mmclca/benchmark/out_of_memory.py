# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Models that do not fit into the memory of a GPU are named, not measured."""

import sys

from .candidates import Candidate


def note(missing: list[str], candidate: Candidate) -> None:
    """Take down a model that ran out of memory, and say so on stderr.

    Args:
        missing (list[str]): Names of such models; it is added.
        candidate (Candidate): The model.
    """
    size = candidate.size
    name = candidate.name or size.name
    missing.append(f'{candidate.label} ({name}, {size.pixels} px)')
    print(f'\nout of memory: {missing[-1]}', file=sys.stderr, flush=True)


def lines(missing: list[str]) -> list[str]:
    """What a page says of these models."""
    return ['', f'Out of memory: {"; ".join(missing)}.'] if missing else []
