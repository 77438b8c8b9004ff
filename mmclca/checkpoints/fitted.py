# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Names of checkpoints: files, and folders that ``mmclca fit`` wrote."""

from os import PathLike
from pathlib import Path

from mmclca.utils.folders import finish_replacing, newest, refuse_links

MODEL, THRESHOLD = 'model.pth', 'threshold.json'
# what fit writes, and replaces together
FILES = (
    *(MODEL, THRESHOLD, 'probe.pth', 'fit.json', 'photographs.csv'),
    *('evidence.safetensors', 'report.html'),
)
# all else that fit writes
OTHERS = (
    *('.draft', '.lock', 'features', 'log.txt', 'training'),
    'pictures.safetensors',
)
WEIGHTS = ('.bin', '.ckpt', '.npz', '.pt', '.pth', '.safetensors')


def is_checkpoint(name) -> bool:
    """Tell files of weights, by their ending, and folders that fit wrote."""
    return isinstance(name, str | PathLike) and (
        str(name).lower().endswith(WEIGHTS) or is_fitted(name)
    )


def is_fitted(place: str | PathLike) -> bool:
    """Return whether a place is a folder with the model of a fit.

    Raises:
        ValueError: If the model is a link, or behind one.
    """
    return newest(Path(place).expanduser(), MODEL).is_file()


def prepare_writing(folder: Path) -> None:
    """Complete an interrupted replacement of the files of a fit.

    Whoever writes into such a folder calls this before.

    Raises:
        ValueError: If the folder holds links where fit writes.
    """
    refuse_links(folder, (*FILES, *OTHERS))
    finish_replacing(folder, FILES)


def model_file(place: str | PathLike) -> str:
    """Return the weight file of a model folder; other paths are returned.

    Raises:
        FileNotFoundError: If the folder contains no model.
    """
    path = Path(place).expanduser()
    if is_fitted(path):
        return str(newest(path, MODEL))
    fit = f'create a model with: python -m mmclca fit PHOTOS --out {place}'
    if path.is_dir():
        raise FileNotFoundError(
            f'{place} does not contain model.pth; pass the checkpoint file, '
            f'or {fit}'
        )
    if not (path.suffix or path.is_file() or '://' in str(place)):
        raise FileNotFoundError(
            f'{place} does not exist, neither as a checkpoint nor as a model '
            f'folder; check the path, or {fit}'
        )
    return str(place)


def threshold_file(place: str | PathLike) -> Path | None:
    """Find the threshold of the model in such a folder, None without."""
    if not is_fitted(place):
        return None
    path = newest(Path(place).expanduser(), THRESHOLD)
    return path if path.is_file() and path.stat().st_size else None
