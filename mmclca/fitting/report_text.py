# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Numbers and names as the report writes them."""

import math
from pathlib import Path

from mmclca.datasets.photos.cells import TABLES


def is_table(source: str) -> bool:
    """Return whether photos are listed in a table."""
    return Path(source).suffix.lower() in TABLES


def file_name(source: str) -> str:
    """Return the name of a file or folder without its path; keep addresses.

    A report may be sent to others: paths name folders and users.
    """
    return source if '://' in source else Path(source).name


def percent(share: float) -> str:
    """Write a share, 0 to 1, with one decimal: '93.4%'."""
    return f'{share:.1%}'


def about(share: float) -> str:
    """Write a share, 0 to 1, in whole percent: '93%', 'under 1%'."""
    if 0 < share < 0.01:
        return 'under 1%'
    return 'over 99%' if 0.99 < share < 1 else f'{share:.0%}'


def out_of_hundred(share: float) -> int:
    """Round a share to a number out of 100; 0 and 100 only if exact."""
    number = round(100 * share)
    return number if share in (0, 1) else min(max(number, 1), 99)


def digits(value: float, number: int = 3) -> str:
    """Write a positive number with some significant digits: '0.482'."""
    decimals = number - 1 - math.floor(math.log10(value))
    return f'{value:.{max(decimals, 0)}f}'


def duration(seconds: float) -> str:
    """Write a time: '11 s', '2 min 51 s'."""
    minutes, remainder = divmod(round(seconds), 60)
    return f'{minutes} min {remainder} s' if minutes else f'{remainder} s'


def plural(number: int, word: str, many: str = '') -> str:
    """Write a number and a noun: '1 class', '2 classes'."""
    return f'{number} {word if number == 1 else many or f"{word}s"}'
