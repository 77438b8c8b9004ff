# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Detect the encoding of names in tables and archives by their letters."""

import re
from collections.abc import Collection
from contextlib import suppress
from typing import Any
from unicodedata import normalize

# letters beyond ASCII of languages with a Latin alphabet
_ALPHABETS = (
    'äöüßéàáôèê',  # German, Swedish
    'àâçéèêëîïôùûüÿœæ',  # French
    'áéíóúñüç',  # Spanish, Catalan
    'àáâãçéêíóôõúü',  # Portuguese
    'àèéìíîòóùú',  # Italian
    'åæøäöéáíóúýðþ',  # Danish, Norwegian, Icelandic
    'çğıöşüâîû',  # Turkish
    'ąćęłńóśźż',  # Polish
    'áäčďéěíľĺňóôŕřšťúůýž',  # Czech, Slovak
    'áéíóöőúüű',  # Hungarian
    'ăâîșțşţ',  # Romanian
    'čćđšž',  # Croatian, Slovenian
)


def _build_pattern(small: str) -> str:
    """Return a pattern of letters beside ASCII letters of fitting case."""
    large = ''.join(x for x in small.upper() if x not in 'SII')
    return (
        f'(?<=[A-Za-z])[{small}](?![A-Z])|[{small}](?=[a-z])'
        f'|(?<![a-z])[{large}](?=[A-Za-z])|(?<=[A-Z])[{large}]'
    )


def _alone(letters: str) -> str:
    """Return a pattern of letters that are not beside ASCII letters."""
    return f'(?<![A-Za-z])({letters})(?![A-Za-z])'


_LATIN = tuple(map(_build_pattern, _ALPHABETS))
# Hangul without rare vowels, doubled letters and rare final letters
_HANGUL = ''.join(
    chr(0xAC00 + (first * 21 + vowel) * 28 + last)
    for first in (0, 2, 3, 5, 6, 7, 9, 11, 12, 14, 15, 16, 17, 18)
    for vowel in (0, 1, 4, 5, 6, 8, 9, 13, 17, 18, 20)
    for last in (0, 1, 4, 8, 16, 17, 21)
)
# Patterns of the frequent characters in each encoding: text, for one or
# several languages, or bytes; the second pattern of bytes counts less (_FAIR).
# Chinese and Japanese standards list frequent characters first.
_FREQUENT: dict[str, tuple[Any, ...]] = {
    'cp1252': _LATIN,
    'cp1250': _LATIN,
    'cp1254': _LATIN,
    'cp1251': (_alone('[а-яёіїє]'),),
    'gb18030': (rb'[\xc9-\xd7][\xa1-\xfe]', rb'[\xb0-\xc8][\xa1-\xfe]'),
    'big5': (rb'[\xa4-\xc6][\x40-\x7e]', rb'[\xa4-\xc6][\xa1-\xfe]'),
    'cp949': (f'[{_HANGUL}]',),
    'cp932': (rb'[\x82\x83\x88-\x97].', rb'[\x98-\x9f\xe0-\xea].'),
    # code pages of DOS, which Windows writes into archives
    'cp850': _LATIN,
    'cp852': _LATIN,
    'cp857': _LATIN,
    'cp866': (_alone('[а-яё]|(?<![а-яё])[А-ЯЁ](?=[А-яёЁ])'),),
}
WINDOWS = tuple(name for name in _FREQUENT if name[:3] != 'cp8')
ALL = tuple(_FREQUENT)
_FAIR = 0.6


def guess_encoding(
    content: bytes, names: Collection[str] = (), among: Collection[str] = ALL
) -> str:
    """Guess the encoding of bytes that are not Unicode.

    Args:
        content (bytes): Names, all from one source.
        names (Collection[str]): Names that the text may contain; the
            encoding with most of them is selected. Defaults to ().
        among (Collection[str]): Candidates: ``WINDOWS``, or ``ALL`` with the
            code pages of DOS. Defaults to ``ALL``.

    Returns:
        str: The encoding whose non-ASCII characters are the most frequent
        ones of its languages, 'latin-1' if none fits.
    """
    names = [normalize('NFC', name) for name in names if not name.isascii()]
    rated = {}
    for encoding in among:
        with suppress(UnicodeDecodeError):
            decoded = content.decode(encoding)
            hits = sum(name in decoded for name in names)
            rated[encoding] = hits, _frequency(decoded[:100_000], encoding)
    return max(rated, key=rated.__getitem__, default='latin-1')


def _frequency(decoded: str, encoding: str) -> float:
    """Return the share of frequent characters among the non-ASCII ones."""
    letters, patterns = (
        re.findall(r'[^\x00-\x7f]', decoded),
        _FREQUENT[encoding],
    )
    if isinstance(patterns[0], str):
        counts = (len(re.findall(pattern, decoded)) for pattern in patterns)
        return max(counts) / max(len(letters), 1)
    often, fair = (re.compile(x, re.DOTALL).fullmatch for x in patterns)
    codes = (letter.encode(encoding) for letter in letters)
    rated = (1 if often(x) else _FAIR * bool(fair(x)) for x in codes)
    return sum(rated) / max(len(letters), 1)
