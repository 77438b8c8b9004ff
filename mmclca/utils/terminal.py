# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Names of others on the terminal, which they must not steer."""

import re
import sys
from typing import TextIO

# control characters, those that turn the direction of a text, and bytes of
# a file's name that are no UTF-8
_CONTROLS = re.compile(
    '[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]'
)


def printable(text: str) -> str:
    r"""A text in one line whose control characters are shown, as ``\x1b``."""
    return _CONTROLS.sub(
        lambda found: found[0].encode('unicode_escape').decode(), text
    )


def say(*lines, file: TextIO | None = None) -> None:
    """Print lines as :func:`printable` gives them.

    Args:
        *lines: Texts, or what becomes one.
        file (TextIO, optional): Where to. Defaults to None: standard output.
    """
    for line in lines:
        print(printable(str(line)), file=file or sys.stdout, flush=True)
