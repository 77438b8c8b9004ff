# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""When an interrupted run began."""

from datetime import datetime
from pathlib import Path

from mmclca.utils.atomic_write import replace_text


def first_start(work_dir: Path, started: datetime) -> datetime:
    """When a run began, noted at its first part.

    Args:
        work_dir (Path): Folder of the run.
        started (datetime): When this part of it began.
    """
    note = work_dir / 'started.txt'
    if note.exists():
        return datetime.fromisoformat(note.read_text())
    replace_text(note, started.isoformat())
    return started
