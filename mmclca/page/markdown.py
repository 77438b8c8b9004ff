# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Names and texts of users within Markdown."""

import re
from collections.abc import Iterable

from mmclca.fitting.wording import LabeledLines
from mmclca.languages import text

_SPECIAL = re.compile(r'([\\`*_\[\]<>#|~&])')


def escape_markdown(content: str) -> str:
    """Escape a text, such as the name of a class, which is no Markdown."""
    return _SPECIAL.sub(r'\\\1', content)


def list_facts(facts: Iterable[LabeledLines]) -> str:
    """Write facts as paragraphs, and several lines as a list."""
    parts = []
    for fact in facts:
        lines = [escape_markdown(line) for line in fact.lines]
        if len(lines) > 1:
            lines = ['', *(f'- {line}' for line in lines)]
        joined = '\n'.join(lines)
        parts.append(text('page.fact', label=fact.label, lines=joined))
    return '\n\n'.join(parts)
