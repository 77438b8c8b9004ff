# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Replace generated text between two marks in a page."""

from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.files import replace_text


def write_between(page: Path, begin: str, end: str, content: str) -> None:
    """Replace the text between two marks in a page."""
    before, start, after_begin = page.read_text(encoding='utf-8').partition(
        begin
    )
    _, stop, after = after_begin.partition(end)
    if not (start and stop):
        raise Error(f'{page}: add the lines {begin.strip()} and {end}')
    replace_text(page, f'{before}{begin}{content}{end}{after}')
