# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Figures as a reader wants them."""

import math

UNIT = '\N{NO-BREAK SPACE}%'


def percent(share: float) -> str:
    """Return a share, 0 to 1, with one decimal: '93.4 %'."""
    return f'{100 * share:.1f}{UNIT}'


def about(share: float) -> str:
    """Return a share, 0 to 1, in whole per cent: '93 %', 'under 1 %'."""
    if 0 < share < 0.01:
        return f'under 1{UNIT}'
    if 0.99 < share < 1:
        return f'over 99{UNIT}'
    return f'{100 * share:.0f}{UNIT}'


def of_hundred(share: float) -> int:
    """Round a share to so many of 100; all or none only if it is so."""
    number = round(100 * share)
    return number if share in (0, 1) else min(max(number, 1), 99)


def digits(value: float, number: int = 3) -> str:
    """Return a positive number with some significant digits: '0.482',
    '17.9'."""
    decimals = number - 1 - math.floor(math.log10(value))
    return f'{value:.{max(decimals, 0)}f}'


def duration(seconds: float) -> str:
    """Return a time: '11 s', '2 min 51 s', '1 h 5 min'."""
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f'{rest} s'
    hours, left = divmod(minutes, 60)
    return f'{hours} h {left} min' if hours else f'{minutes} min {rest} s'


def listed(names: list[str], most: int = 12) -> str:
    """Return names, the first of them where there are many."""
    more = len(names) - most
    first = ', '.join(names[:most])
    return f'{first} and {more} more' if more > 0 else first


def plural(number: int, word: str, many: str = '') -> str:
    """Return a number of things: '1 class', '2 classes'."""
    return f'{number} {word if number == 1 else many or f"{word}s"}'
