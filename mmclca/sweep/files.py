# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Files that no reader finds half written."""

import os
import platform
from pathlib import Path


def write_at_once(path: Path, text: str) -> None:
    """Write a text under another name, then rename it.

    Readers find the whole file or none, on network file systems too, and of
    many writers each leaves a whole one.

    Args:
        path (Path): The file.
        text (str): Its content.
    """
    writer = f'{platform.node()}-{os.getpid()}'
    part = path.with_name(f'.{path.name}.{writer}')
    with part.open('w') as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
