# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, which takes its place only if nothing fails.

    Args:
        path (Path): The file to make or to replace.

    Yields:
        Path: One of the same suffix, in a folder of its own beside it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        part = Path(folder, path.name)
        yield part
        part.replace(path)
