# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Normalize spellings of names, and compare names by their appearance."""

import re
from unicodedata import category, normalize

# Joiners (U+200C, U+200D) change the shape of letters, so they are kept.
_INVISIBLE = re.compile(
    '[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f'
    '\u202a-\u202e\u2060-\u2069\u3164\ufeff\uffa0]'
)
# Cyrillic and Greek letters, quotes and dashes, and similar ASCII characters
_TWINS = str.maketrans(
    'аеорсухіјѕАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧο‘’ʼ`´‐–—−',
    "aeopcyxijsABEKMHOPCTYXIJSABEZHIKMNOPTYXo'''''----",
)


def normalize_name(name: str) -> str:
    """Normalize a name: NFC, no invisible characters, single spaces."""
    return ' '.join(_INVISIBLE.sub('', normalize('NFC', name)).split())


def visual_key(name: str) -> str:
    """Return a key for comparing names by their appearance.

    It ignores case, spaces, width, separators, similar letters of other
    scripts, leading zeros and the date order.
    """
    plain = (
        normalize_name(normalize('NFKC', name)).translate(_TWINS).casefold()
    )
    kept = (x for x in plain if category(x) not in ('Cc', 'Cf'))
    plain = re.sub('[\ufe00-\ufe0f]', '', ''.join(kept)).strip('\'"')
    plain = plain.removesuffix(' 00:00:00')
    numbers = re.findall(r'\d+', plain)
    if re.fullmatch(r'[+-]?(\d+[.,]?\d*|\d*[.,]\d+)(e[+-]?\d+)?', plain):
        return f'{float(plain.replace(",", ".")):g}'
    is_date = len(numbers) == 3 and re.fullmatch(r'[\d\s./-]+', plain)
    if is_date and 4 in map(len, numbers):
        return ' '.join(map(str, sorted(map(int, numbers))))
    between = r'(?<=[^\W\d])[_-]+(?=[^\W\d])'
    return re.sub(rf'{between}|[\s_]|[.,]+$', '', plain)
