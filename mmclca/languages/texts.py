# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Read the tables of texts, and choose the current language."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

ENGLISH = 'en'
Text = str | dict[str, str]
_language = ContextVar('language', default=ENGLISH)


@cache
def list_languages() -> tuple[str, ...]:
    """List the language codes, English first."""
    names = [x.name for x in files(__package__).iterdir()]
    codes = {x.removesuffix('.json') for x in names if x.endswith('.json')}
    return ENGLISH, *sorted(codes - {ENGLISH})


def read_texts(prefix: str) -> dict[str, dict[str, Text]]:
    """Read the texts for one user interface in all languages.

    Args:
        prefix (str): Start of their keys, such as 'app.'.

    Returns:
        dict: Text by key, by language code. ``{name}`` in a text is a value
        that the interface inserts. A text with several forms is a dict.
    """
    return {
        code: {
            key: forms
            for key, forms in _read_table(code).items()
            if key.startswith(prefix)
        }
        for code in list_languages()
    }


def current_language() -> str:
    """Return the code of the current language."""
    return _language.get()


@contextmanager
def use_language(code: str) -> Iterator[None]:
    """Write texts in another language, in this thread or task."""
    token = _language.set(code)
    try:
        yield
    finally:
        _language.reset(token)


def text(key: str, **values: Any) -> str:
    """Return a text in the current language.

    Args:
        key (str): Key in the tables.
        **values: Values of its placeholders; ``number`` selects the form of a
            text with several.
    """
    return choose_form(key, values.get('number')).format(**values)


@dataclass(frozen=True)
class Note:
    """Text that is written when it is shown, in the language of its reader.

    Args:
        key (str): Key in the tables.
        values (dict[str, str]): Values of its placeholders. Defaults to {}.
    """

    key: str
    values: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return text(self.key, **self.values)


def choose_form(key: str, number: int | None = None) -> str:
    """Return a text with its placeholders, in the form for a number."""
    forms = _read_table(_language.get())[key]
    if isinstance(forms, str):
        return forms
    return forms['one' if number == 1 and 'one' in forms else 'other']


@cache
def _read_table(code: str) -> dict[str, Text]:
    table = files(__package__).joinpath(f'{code}.json').read_text('utf-8')
    return json.loads(table)
