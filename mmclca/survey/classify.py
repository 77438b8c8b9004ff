# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Classify a folder of new photos with a fitted model."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from mmclca.apis import TokenReductionInferencer
from mmclca.checkpoints.gate.photo_table import PhotoRow, compute_sha256
from mmclca.datasets.image_files import find_images
from mmclca.errors import Error
from mmclca.fitting.fit_folder import FitFolder
from mmclca.utils.messages import track


@dataclass(frozen=True)
class ClassifiedFolder:
    """New photos in a folder, with class probabilities.

    Args:
        path (Path): The folder.
        classes (list[str]): Class names.
        photos (list[str]): Readable photos that were not in training.
        probabilities (np.ndarray): Class probabilities (N, K).
        confusions (np.ndarray): Cross-validated training photos by predicted
            class and label (K, K).
        unreadable (dict[str, str]): Reasons for unreadable photos by path.
        in_training (int): Photos left out since they were in training.
    """

    path: Path
    classes: list[str]
    photos: list[str]
    probabilities: np.ndarray
    confusions: np.ndarray
    unreadable: dict[str, str]
    in_training: int


def resolve_folder(photos: str | PathLike) -> Path:
    """Return the absolute path to a folder.

    Raises:
        FileNotFoundError: If it does not exist.
        Error: If it is a file.
    """
    path = Path(os.path.abspath(os.path.expanduser(photos)))
    if path.is_file():
        raise Error(f'{path} is a file; give the folder of the new photos')
    if not path.is_dir():
        raise FileNotFoundError(
            f'folder {path} does not exist; give the folder of the new photos'
        )
    return path


def classify_folder(
    model: str | PathLike, photos: str | PathLike, device: str | None = None
) -> ClassifiedFolder:
    """Classify the new photos in a folder.

    Photos with the same content as a training photo are left out.

    Args:
        model (str | Path): Model folder.
        photos (str | Path): Folder with photos, also in subfolders.
        device (str, optional): Device. Defaults to None: a GPU if available.

    Raises:
        FileNotFoundError: If a folder does not exist.
        Error: If the model is damaged, or there are no readable new photos.
    """
    files = FitFolder.open(model)
    folder = resolve_folder(photos)
    inferencer = TokenReductionInferencer(files.path, device=device)
    return classify_photos(files, inferencer, folder)


def classify_photos(
    files: FitFolder, inferencer: TokenReductionInferencer, folder: Path
) -> ClassifiedFolder:
    """Classify the new photos in a folder by a loaded model.

    Works like :func:`classify_folder`.

    Args:
        files (FitFolder): Model folder.
        inferencer (TokenReductionInferencer): Its model.
        folder (Path): Folder with photos, also in subfolders.
    """
    learned = files.read_used_photos()
    digests = {photo.sha256 for photo in learned} - {''}
    paths = find_images([folder])
    if not paths:
        raise Error(f'{folder} has no photo')
    new = [path for path in paths if compute_sha256(path) not in digests]
    stream = inferencer.stream(new)
    results = [*track(stream, 'Classifying', len(new))]
    readable = [result for result in results if 'error' not in result]
    if not readable:
        raise Error(
            f'{folder} has no readable new photo: {len(results)} are '
            f'unreadable, {len(paths) - len(new)} were in training'
        )
    classes = [*inferencer.classes]
    return ClassifiedFolder(
        path=folder,
        classes=classes,
        photos=[result['image'] for result in readable],
        probabilities=np.stack([x['pred_scores'] for x in readable]),
        confusions=count_confusions(learned, classes),
        unreadable={x['image']: x['error'] for x in results if 'error' in x},
        in_training=len(paths) - len(new),
    )


def count_confusions(
    photos: Sequence[PhotoRow], classes: Sequence[str]
) -> np.ndarray:
    """Count cross-validated training photos by predicted class and label.

    Args:
        photos (Sequence[PhotoRow]): Training photos.
        classes (Sequence[str]): Class names.

    Returns:
        np.ndarray: Numbers (K, K); untested photos are not counted.
    """
    numbers = {name: i for i, name in enumerate(classes)}
    confusions = np.zeros((len(classes), len(classes)), dtype=int)
    for photo in photos:
        if {photo.prediction, photo.label} <= numbers.keys():
            confusions[numbers[photo.prediction], numbers[photo.label]] += 1
    return confusions
