# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Read the day of a photo from its EXIF data or from names."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone

# cameras with a reset clock write earlier years
FIRST_YEAR = 1990
_SEPARATOR = r'[-_. ]'
# IMG_20230714_101112, PXL_20230714_101112345, IMG-20230714-WA0001,
# 2023-07-14 10.11.12, 20230714101112
_YEAR_FIRST = re.compile(
    r'(?<!\d)(?P<year>(?:19|20)\d\d)(?P<separator>[-_. ]?)(?P<month>\d\d)'
    r'(?P=separator)(?P<day>\d\d)(?=\D|$|\d{4}$|\d{6}(?:\d{3})?(?!\d))'
)
# 14.07.2023, 7-14-2023
_YEAR_LAST = re.compile(
    rf'(?<!\d)(?P<first>\d{{1,2}})(?P<separator>{_SEPARATOR})'
    r'(?P<second>\d{1,2})(?P=separator)(?P<year>(?:19|20)\d\d)(?!\d)'
)
# seconds or milliseconds since 1970, as in FB_IMG_1689321472123
_UNIX_TIME = re.compile(r'(?<!\d)(1\d{9})(?:\d{3})?(?!\d)')
_EXIF = re.compile(r'(\d{4}):(\d\d):(\d\d)')


@dataclass(frozen=True)
class NamedDay:
    """Day in a name, with both readings if day and month may be swapped.

    Args:
        day_first (date, optional): Reading as day, month, year.
        month_first (date, optional): Reading as month, day, year.
    """

    day_first: date | None
    month_first: date | None

    @property
    def is_ambiguous(self) -> bool:
        """Whether both readings are possible and differ."""
        readings = {self.day_first, self.month_first}
        return None not in readings and len(readings) == 2


def make_date(year: int, month: int, day: int) -> date | None:
    """Return a day; None before 1990, in the future, or if impossible."""
    try:
        value = date(year, month, day)
    except ValueError:
        return None
    # tomorrow: another time zone
    latest = date.today() + timedelta(days=1)
    return value if value.year >= FIRST_YEAR and value <= latest else None


def parse_exif_date(value: object) -> date | None:
    """Parse an EXIF time such as '2023:07:14 10:11:12'."""
    match = _EXIF.match(str(value))
    return make_date(*map(int, match.groups())) if match else None


def parse_name(name: str) -> NamedDay | None:
    """Find a day in the name of a file or folder; None without one."""
    for match in _YEAR_FIRST.finditer(name):
        day = make_date(
            int(match['year']), int(match['month']), int(match['day'])
        )
        if day:
            return NamedDay(day, day)
    for match in _YEAR_LAST.finditer(name):
        year = int(match['year'])
        first, second = int(match['first']), int(match['second'])
        day_first = make_date(year, second, first)
        # dates with dots begin with the day
        month_first = make_date(year, first, second)
        if match['separator'] == '.':
            month_first = day_first
        if day_first or month_first:
            return NamedDay(day_first, month_first)
    for match in _UNIX_TIME.finditer(name):
        time = datetime.fromtimestamp(int(match[1]), timezone.utc)
        day = make_date(time.year, time.month, time.day)
        if day:
            return NamedDay(day, day)
    return None


def parse_names(paths: Iterable[tuple[str, ...]]) -> list[date | None]:
    """Find the day of each path, given as the names of folders and file.

    The file name counts first, then the nearest folder. Whether the day or
    the month comes first in names such as 7-8-2023 is decided by the other
    names; without evidence, the day.
    """
    days = [
        next(filter(None, map(parse_name, reversed(path))), None)
        for path in paths
    ]
    is_month_first = _prefers_month_first(filter(None, days))
    return [
        None
        if day is None
        else (day.month_first or day.day_first)
        if is_month_first
        else (day.day_first or day.month_first)
        for day in days
    ]


def _prefers_month_first(days: Iterator[NamedDay]) -> bool:
    """Return whether some names can be read with the month first only."""
    readings = [*days]
    month_only = sum(day.day_first is None for day in readings)
    day_only = sum(day.month_first is None for day in readings)
    return month_only > day_only
