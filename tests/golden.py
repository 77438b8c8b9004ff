# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Golden files: stored output of commands.

``MMCLCA_WRITE_GOLDEN=1 python -m pytest TESTS`` writes the files for these
tests again. A commit with a changed golden file gives the reason.
"""

import os
import re
from pathlib import Path

FOLDER = Path(__file__).parent / 'golden'
WRITE = 'MMCLCA_WRITE_GOLDEN' in os.environ


def golden(name, text):
    """Return the content of a golden file, after an update if requested."""
    path = FOLDER / name
    if WRITE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding='utf-8')
    return path.read_text(encoding='utf-8')


def without_folder(text, folder):
    """Remove the folder, times and sizes from a text."""
    text = text.replace(str(folder), 'FOLDER')
    return re.sub(r'\d+(\.\d+)? (ms|s|MB)\b', r'N \2', text)
