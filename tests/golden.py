# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Golden files: what a command said when its file was written.

``MMCLCA_WRITE_GOLDEN=1 python -m pytest TESTS`` writes anew the files of the
tests that run. A golden file changes only in a commit that says why.
"""

import os
import re
from pathlib import Path

FOLDER = Path(__file__).parent / 'golden'
WRITE = 'MMCLCA_WRITE_GOLDEN' in os.environ


def golden(name, text):
    """What the file of a name holds; where files are written, that text."""
    path = FOLDER / name
    if WRITE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding='utf-8')
    return path.read_text(encoding='utf-8')


def names(folder):
    """The names, without endings, of the files of a folder."""
    return {path.stem for path in (FOLDER / folder).iterdir()}


def without_folder(text, folder):
    """A text in which no path and no time depends on the run."""
    text = text.replace(str(folder), 'FOLDER')
    return re.sub(r'\d+(\.\d+)? (ms|s|MB)\b', r'N \2', text)
