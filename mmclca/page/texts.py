# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Texts of the page for readers without a terminal."""

import re

from mmclca.fitting.record import FitRecord
from mmclca.fitting.report import out_of_hundred
from mmclca.fitting.screen import describe_validity, why_unmeasured

# advice for another screen: options and keys of a terminal, commands
_OPTION = re.compile(r'(?<![\w-])--(?=[a-z])')
_TERMINAL = re.compile(f'{_OPTION.pattern}|Ctrl-C|-m mmclca')
_JOINTS = re.compile('(; |, or )')


def without_advice(line: str) -> str:
    """Drop advice from a line: options, keys and commands."""
    first, *others = _JOINTS.split(line)
    kept = '' if '-m mmclca' in first else _OPTION.sub('', first)
    for joint, text in zip(others[::2], others[1::2], strict=True):
        if not _TERMINAL.search(text):
            kept += joint + text
    return kept


def describe_result(record: FitRecord) -> str:
    """Describe the accuracy of a model in Markdown, and where it holds."""
    best = record.best
    if best['accuracy'] is None:
        return f'**The accuracy was not measured:** {why_unmeasured(record)}.'
    right = out_of_hundred(best['accuracy'])
    verb, between = 'gets' if right == 1 else 'get', ''
    if best['low'] is not None:
        low, high = (out_of_hundred(best[x]) for x in ('low', 'high'))
        between = f', probably between {low} and {high}'
    return (
        f'**Of 100 new photos like these, about {right} {verb} the right '
        f'name**{between}. This applies to {describe_validity(record)}.'
    )
