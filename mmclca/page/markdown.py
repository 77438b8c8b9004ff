# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Names and texts of users within Markdown."""

import re

_SPECIAL = re.compile(r'([\\`*_\[\]<>#|~&])')


def escape_markdown(content: str) -> str:
    """Escape a text, such as the name of a class, which is no Markdown."""
    return _SPECIAL.sub(r'\\\1', content)
