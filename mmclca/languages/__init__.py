# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Texts of the user interfaces: one table per language, by short keys.

A further language is one file, named after its code, such as ``fr.json``.
"""

import json
from pathlib import Path

from .texts import (
    ENGLISH,
    choose_form,
    current_language,
    list_languages,
    text,
    use_language,
)

__all__ = [
    'ENGLISH',
    'choose_form',
    'current_language',
    'list_languages',
    'read_texts',
    'text',
    'use_language',
]

Text = str | dict[str, str]
_FOLDER = Path(__file__).parent


def read_texts(prefix: str) -> dict[str, dict[str, Text]]:
    """Read the texts for one user interface in all languages.

    Args:
        prefix (str): Start of their keys, such as 'app.'.

    Returns:
        dict: Text by key, by language code. ``{name}`` in a text is a value
        that the interface inserts. A text with several forms is a dict.
    """
    tables = {
        file.stem: json.loads(file.read_bytes())
        for file in sorted(_FOLDER.glob('*.json'))
    }
    return {
        language: {
            key: text for key, text in table.items() if key.startswith(prefix)
        }
        for language, table in tables.items()
    }
