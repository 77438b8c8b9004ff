# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Spellings of names: joined where certain, compared where they look alike."""

import re
from unicodedata import category, normalize

# Joiners (U+200C, U+200D) change the shape of letters, so they are kept.
_INVISIBLE = re.compile(
    '[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f'
    '\u202a-\u202e\u2060-\u2069\u3164\ufeff\uffa0]'
)
# Cyrillic and Greek letters and quotes that look like those of ASCII
_TWINS = str.maketrans(
    'аеорсухіјѕАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧο‘’ʼ`´‐–—−',
    "aeopcyxijsABEKMHOPCTYXIJSABEZHIKMNOPTYXo'''''----",
)


def clean(name: str) -> str:
    """Return the one spelling of names that only a program tells apart.

    Args:
        name (str): The name of a class, a file or a column.

    Returns:
        str: The name in NFC, without invisible characters, with single
        spaces and none around it.
    """
    return ' '.join(_INVISIBLE.sub('', normalize('NFC', name)).split())


def look(name: str) -> str:
    """Return a key that names share if they look the same to a reader.

    Args:
        name (str): The name of a class.

    Returns:
        str: Equal for names that differ in case, spaces, width, separators,
        twin letters of other scripts, zeros of a number or order of a date.
    """
    plain = clean(normalize('NFKC', name)).translate(_TWINS).casefold()
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
