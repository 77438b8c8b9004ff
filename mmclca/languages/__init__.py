# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Texts of the user interfaces: one table per language, by short keys.

A further language is one file, named after its code, such as ``fr.json``.
"""

import json
from pathlib import Path

DEFAULT = 'en'
_FOLDER = Path(__file__).parent


def read_texts(prefix: str) -> dict[str, dict[str, str]]:
    """Read the texts for one user interface in all languages.

    Args:
        prefix (str): Start of their keys, such as 'app.'.

    Returns:
        dict: Text by key, by language code. ``{name}`` in a text is a value
        that the interface inserts.
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
