# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Texts of the web app, written into its page and its scripts."""

import json
import re
from html import escape

from mmclca.languages import choose_form, read_texts

PREFIX = 'app.'
_MARK = re.compile(r'data-text="([^"]+)">')


def write_texts(script: bytes) -> bytes:
    """Write the texts in all languages into the script that selects one."""
    tables = json.dumps(read_texts(PREFIX), indent=1, ensure_ascii=False)
    return script.decode().replace('TEXTS = {}', f'TEXTS = {tables}').encode()


def write_page(page: bytes) -> bytes:
    """Write English texts into a page, which are there without a script.

    An element with ``data-text="KEY"`` has the text as its content.
    """

    def add(match: re.Match) -> str:
        return match[0] + escape(choose_form(match[1]), quote=False)

    return _MARK.sub(add, page.decode()).encode()
