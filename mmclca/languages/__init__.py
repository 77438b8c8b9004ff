# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Texts of the user interfaces: one table per language, by short keys.

A further language is one file, named after its code, such as ``fr.json``.
"""

from .texts import (
    ENGLISH,
    Note,
    choose_form,
    current_language,
    list_languages,
    read_texts,
    text,
    use_language,
)

__all__ = [
    'ENGLISH',
    'Note',
    'choose_form',
    'current_language',
    'list_languages',
    'read_texts',
    'text',
    'use_language',
]
