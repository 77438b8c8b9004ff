# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Collection
from difflib import get_close_matches


def not_one_of(name: object, known: Collection[str]) -> str:
    """What is said of a name that is not known: a close one, and all.

    Args:
        name (object): The name.
        known (Collection[str]): Those that there are.
    """
    close = get_close_matches(str(name), known, n=1, cutoff=0.4)
    hint = f' (do you mean {close[0]}?)' if close else ''
    return f'no {name!r}{hint}; there are {", ".join(known)}'
