# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""One training photo per class, to show what the class looks like."""

from collections.abc import Sequence
from pathlib import Path

from mmclca.checkpoints.gate.photo_table import PhotoRow, compute_sha256
from mmclca.checkpoints.model_folder import ModelFolder, is_fitted
from mmclca.errors import Error
from mmclca.utils.messages import join_first


def find_class_photos(
    checkpoint: str | Path, classes: Sequence[str]
) -> list[Path]:
    """Find the most typical training photo per class of a model folder.

    It is the one whose class was most probable when it was left out of the
    training, among the photos that still exist.

    Raises:
        OSError: If photographs.csv is missing.
        Error: If the checkpoint is not a model folder, or the photos of a
            class are gone.
    """
    if not is_fitted(checkpoint):
        raise Error(
            f'`photos_in_app` needs a model folder written by fit, not '
            f'{checkpoint}'
        )
    rows = ModelFolder.open(checkpoint).read_used_photos()
    photos: dict[str, PhotoRow] = {}
    for row in sorted(rows, key=_get_probability, reverse=True):
        # a model folder from elsewhere may list any file of this computer
        if row.label not in photos and row.sha256 == compute_sha256(row.path):
            photos[row.label] = row
    if missing := [name for name in classes if name not in photos]:
        raise Error(
            f'`photos_in_app` found no training photo of {len(missing)} '
            f'classes ({join_first(missing, 3)}); move the photos back to '
            'where fit found them'
        )
    return [Path(photos[name].path) for name in classes]


def _get_probability(row: PhotoRow) -> float:
    """Return the probability of the class of a photo; -1 if not tested."""
    return -1 if row.label_probability is None else row.label_probability
