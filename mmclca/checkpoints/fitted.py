# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A folder that ``mmclca fit`` wrote, in the place of a checkpoint."""

from os import PathLike
from pathlib import Path

from mmclca.utils.atomic_write import finish_replacing


def is_fitted(place: str | PathLike) -> bool:
    """Whether a place is a folder with the model of a fit."""
    folder = Path(place).expanduser()
    if folder.is_dir():
        finish_replacing(folder)
    return (folder / 'model.pth').is_file()


def model_file(place: str | PathLike) -> str:
    """The file of weights of a place, which may be such a folder.

    Args:
        place (str | Path): A folder that fit wrote, or a path or address of
            a file, which comes back as it is.

    Raises:
        FileNotFoundError: If it is a folder without a model.
    """
    if is_fitted(place):
        return str(Path(place).expanduser() / 'model.pth')
    if Path(place).expanduser().is_dir():
        raise FileNotFoundError(
            f'{place} has no model.pth: mmclca fit PHOTOGRAPHS --out {place} '
            'writes it; or name the checkpoint file in it'
        )
    return str(place)


def threshold_file(place: str | PathLike) -> Path | None:
    """The threshold of the model in such a folder, None without one."""
    path = Path(place).expanduser() / 'threshold.json'
    return path if is_fitted(place) and path.is_file() else None
