# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Collection
from difflib import get_close_matches


def did_you_mean(name: object, known: Collection[str], most: int = 1) -> str:
    """Names that come close, in brackets; empty if none does."""
    close = get_close_matches(str(name), known, most, cutoff=0.5)
    return f' (do you mean {" or ".join(close)}?)' if close else ''


def not_one_of(name: object, known: Collection[str]) -> str:
    """Answer a name that is not known: by a close one, and all."""
    hint = did_you_mean(name, known)
    return f'no {name!r}{hint}; there are {", ".join(known)}'
