# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Names of checkpoints: files, and folders that ``mmclca fit`` wrote."""

from os import PathLike
from pathlib import Path

from mmclca.utils.files import finish_replacing

THRESHOLD = 'threshold.json'
WEIGHTS = ('.bin', '.ckpt', '.npz', '.pt', '.pth', '.safetensors')


def is_checkpoint(name) -> bool:
    """Tell files of weights, by their ending, and folders that fit wrote."""
    return isinstance(name, str | PathLike) and (
        str(name).lower().endswith(WEIGHTS) or is_fitted(name)
    )


def is_fitted(place: str | PathLike) -> bool:
    """Tell whether a place is a folder with the model of a fit."""
    folder = Path(place).expanduser()
    if folder.is_dir():
        finish_replacing(folder)
    return (folder / 'model.pth').is_file()


def model_file(place: str | PathLike) -> str:
    """Find the file of weights of a place, which may be such a folder.

    Raises:
        FileNotFoundError: If it is a folder without a model.
    """
    path = Path(place).expanduser()
    if is_fitted(path):
        return str(path / 'model.pth')
    fit = f'mmclca fit PHOTOGRAPHS --out {place} writes it'
    if path.is_dir():
        raise FileNotFoundError(
            f'{place} is a folder with no model.pth: {fit}; or name the '
            'checkpoint file in it'
        )
    if not (path.suffix or path.is_file() or '://' in str(place)):
        raise FileNotFoundError(
            f'there is no checkpoint {place}, and no model.pth in a folder '
            f'of that name: {fit}'
        )
    return str(place)


def threshold_file(place: str | PathLike) -> Path | None:
    """Find the threshold of the model in such a folder, None without."""
    path = Path(place).expanduser() / THRESHOLD
    return path if is_fitted(place) and path.is_file() else None
