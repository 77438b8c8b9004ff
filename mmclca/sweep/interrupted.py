# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What an interrupted run has left to go on from."""

from datetime import datetime
from pathlib import Path

from mmengine.runner import CheckpointLoader

from mmclca.utils.checkpoint_error import CheckpointError


def latest_checkpoint(work_dir: Path) -> tuple[str | None, int]:
    """The last checkpoint that can be opened, and its iterations.

    A process that is killed while it writes one leaves half of it, and its
    note of the last one may name a file that is gone.

    Args:
        work_dir (Path): Folder of the run; it need not exist.

    Returns:
        tuple[str | None, int]: Path and iterations; None and 0 where there is
        none.
    """
    files = work_dir.glob('epoch_*.pth')
    for file in sorted(files, key=lambda path: -_epoch(path)):
        try:
            checkpoint = CheckpointLoader.load_checkpoint(str(file), 'cpu')
        except CheckpointError:
            continue
        return str(file), checkpoint['meta']['iter']
    return None, 0


def _epoch(path: Path) -> int:
    return int(path.stem.rpartition('_')[2])


def first_start(work_dir: Path, started: datetime) -> datetime:
    """When a run began, noted at its first part.

    Args:
        work_dir (Path): Folder of the run.
        started (datetime): When this part of it began.
    """
    work_dir.mkdir(parents=True, exist_ok=True)
    note = work_dir / 'started.txt'
    try:
        with note.open('x') as file:
            file.write(started.isoformat())
    except FileExistsError:
        return datetime.fromisoformat(note.read_text())
    return started
