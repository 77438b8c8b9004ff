# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Numbers, names and descriptions as screen, report and page write them."""

import math
from dataclasses import dataclass
from pathlib import Path

from mmclca.datasets.photos.cells import TABLES
from mmclca.languages import text


@dataclass(frozen=True)
class Advice:
    """Advice for the command line.

    Args:
        purpose (str): What the option is good for.
        option (str): Option of ``fit``.
    """

    purpose: str
    option: str


@dataclass(frozen=True)
class Description:
    """Description of a part of the record, for screen and report.

    Args:
        lines (tuple[str, ...]): Facts, one per line. Defaults to (): the part
            does not apply.
        details (str): Explanation in sentences, for the report. Defaults to
            ''.
        advice (Advice, optional): Advice for the command line. Defaults to
            None.
    """

    lines: tuple[str, ...] = ()
    details: str = ''
    advice: Advice | None = None


@dataclass(frozen=True)
class LabeledLines:
    """Facts of one kind, for screen and page.

    Args:
        label (str): Kind, in one word.
        lines (list[str]): The facts.
    """

    label: str
    lines: list[str]


def is_table(source: str) -> bool:
    """Return whether photos are listed in a table."""
    return Path(source).suffix.lower() in TABLES


def file_name(source: str) -> str:
    """Return the name of a file or folder without its path; keep addresses.

    A report may be sent to others: paths name folders and users.
    """
    return source if '://' in source else Path(source).name


def percent(share: float | None) -> str:
    """Write a share, 0 to 1, with one decimal: '93.4%', or 'unknown'."""
    return text('count.unknown') if share is None else f'{share:.1%}'


def interval(low: float | None, high: float | None) -> str:
    """Write a 95% interval in brackets; empty if it is unknown."""
    if low is None or high is None:
        return ''
    return text('count.interval', low=f'{100 * low:.1f}', high=f'{high:.1%}')


def about(share: float) -> str:
    """Write a share, 0 to 1, in whole percent: '93%', 'under 1%'."""
    if 0 < share < 0.01:
        return text('count.under', share='1%')
    if 0.99 < share < 1:
        return text('count.over', share='99%')
    return f'{share:.0%}'


def out_of_hundred(share: float) -> int:
    """Round a share to a number out of 100; 0 and 100 only if exact."""
    number = round(100 * share)
    return number if share in (0, 1) else min(max(number, 1), 99)


def digits(value: float, number: int = 3) -> str:
    """Write a positive number with some significant digits: '0.482', '1.3'."""
    decimals = max(number - 1 - math.floor(math.log10(value)), 0)
    written = f'{value:.{decimals}f}'
    return written.rstrip('0').rstrip('.') if decimals else written


def duration(seconds: float) -> str:
    """Write a time: '11 s', '2 min 51 s'."""
    minutes, remainder = divmod(round(seconds), 60)
    if minutes:
        return text('count.minutes', minutes=minutes, seconds=remainder)
    return text('count.seconds', seconds=remainder)


def count_photos(number: int) -> str:
    """Write a number of photos: '1 photo', '2 photos'."""
    return text('count.photos', number=number)


def count_classes(number: int) -> str:
    """Write a number of classes: '1 class', '2 classes'."""
    return text('count.classes', number=number)


def plural(number: int, word: str, many: str = '') -> str:
    """Write a number and a noun: '1 class', '2 classes'."""
    return f'{number} {word if number == 1 else many or f"{word}s"}'


def sentence(line: str) -> str:
    """Begin a line with a capital letter, and end it with a period."""
    return text('count.sentence', line=f'{line[:1].upper()}{line[1:]}')
