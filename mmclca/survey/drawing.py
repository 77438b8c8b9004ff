# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw new photos at random, to be labeled."""

import os
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from mmclca.errors import Error
from mmclca.utils.messages import check_integer

from .classify import ClassifiedFolder, classify_folder
from .sampling import draw_sample, stratify
from .table import (
    MIN_LABELS,
    DrawnPhoto,
    check_survey_table,
    write_survey_table,
)


@dataclass(frozen=True)
class DrawnSurvey:
    """Folder, and the photos to label.

    Args:
        folder (ClassifiedFolder): Classified photos.
        drawn (list[DrawnPhoto]): Photos to label, in random order.
    """

    folder: ClassifiedFolder
    drawn: list[DrawnPhoto]


def draw_survey(
    model: str | PathLike,
    photos: str | PathLike,
    out: str | PathLike = 'survey.csv',
    number: int = 30,
    seed: int = 0,
    device: str | None = None,
) -> DrawnSurvey:
    """Draw a stratified random sample from new photos, and write its table.

    The table has an empty column ``class``; :func:`measure_survey` reads it
    with labels. It does not show the predictions, which could influence a
    person. See :func:`stratify`.

    Args:
        model (str | Path): Model folder.
        photos (str | Path): Folder with new photos, also in subfolders.
        out (str | Path): Table to write, .csv or .xlsx. Defaults to
            'survey.csv'.
        number (int): Photos to label, at least 10. Defaults to 30.
        seed (int): Random seed. Defaults to 0.
        device (str, optional): Device. Defaults to None: a GPU if available.

    Returns:
        DrawnSurvey: The folder, and the photos to label.

    Raises:
        FileNotFoundError: If a folder does not exist.
        Error: If there are too few photos, or ``out`` has labels.
    """
    check_integer(MIN_LABELS, number=number)
    check_integer(0, seed=seed)
    check_survey_table(Path(out))
    folder = classify_folder(model, photos, device)
    drawn = draw_photos(folder, number, seed)
    write_survey_table(Path(out), drawn)
    return DrawnSurvey(folder, drawn)


def draw_photos(
    folder: ClassifiedFolder, number: int = 30, seed: int = 0
) -> list[DrawnPhoto]:
    """Draw photos to label from a classified folder.

    Args:
        folder (ClassifiedFolder): Classified photos.
        number (int): Photos to label. Defaults to 30.
        seed (int): Random seed. Defaults to 0.

    Returns:
        list[DrawnPhoto]: Photos with paths in the folder, in random order.

    Raises:
        Error: If there are fewer than 10 photos.
    """
    if len(folder.photos) < MIN_LABELS:
        raise Error(
            f'{folder.path} has {len(folder.photos)} new photos; a survey '
            f'needs at least {MIN_LABELS}'
        )
    strata = stratify(folder.probabilities, number)
    positions = draw_sample(strata, number, seed)
    sizes, counts = np.bincount(strata), np.bincount(strata[positions])
    names = [os.path.relpath(x, folder.path) for x in folder.photos]
    return [
        DrawnPhoto(
            path=Path(names[i]).as_posix(),
            stratum=int(strata[i]),
            drawn=int(counts[strata[i]]),
            photos=int(sizes[strata[i]]),
        )
        for i in positions
    ]
