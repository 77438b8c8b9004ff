# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write the cross-validated predictions: photographs.csv and their tensors."""

import zlib
from collections import defaultdict
from typing import Any

from torch import Tensor

from mmclca.checkpoints.model_folder import ModelFolder
from mmclca.datasets.photos import LabeledImages, PhotoCheck
from mmclca.datasets.photos.captures import Capture
from mmclca.evaluation.calibration_file import write_calibration
from mmclca.evaluation.conformal import Calibration
from mmclca.utils.files import write_rows

PHOTO_COLUMNS = ('path', 'class', 'group', 'split', 'used', 'why_not')
PREDICTION_COLUMNS = ('predicted', 'p_given', 'p_predicted')
COLUMNS = (*PHOTO_COLUMNS, *PREDICTION_COLUMNS, 'digest', 'near_duplicates')
CAPTURE_COLUMNS = ('day', 'camera')  # only if some are known


def write_predictions(
    folder: ModelFolder, checked: PhotoCheck, calibration: Calibration
) -> int:
    """Write cv_probabilities.safetensors and photographs.csv.

    Both have the photos in the same order. Return the checksum of the table.
    """
    write_calibration(folder.cv_probabilities, calibration)
    rows = list_photo_rows(checked, calibration.probabilities)
    write_rows(folder.table, rows)
    return zlib.crc32(folder.table.read_bytes())


def list_photo_rows(
    checked: PhotoCheck, probabilities: Tensor
) -> list[list[Any]]:
    """Return the rows of photographs.csv, training photos first.

    ``probabilities`` (N, K) of training photos are NaN if untested.
    """
    photos = checked.photos
    groups = photos.groups or [''] * len(photos)
    near_duplicates = defaultdict(list)
    for path, other in checked.near_duplicates:
        near_duplicates[path].append(other)
        near_duplicates[other].append(path)
    training = dict(zip(photos.to_train(), probabilities, strict=True))
    rows: list[list[Any]] = []
    for i, path in enumerate(photos.paths):
        split, is_used = photos.splits[i], i in training
        row = [path, photos.names[i], groups[i], split, is_used]
        row.append('' if is_used else f'held out in {split}')
        row += (
            describe_prediction(photos, i, training[i])
            if is_used
            else [''] * len(PREDICTION_COLUMNS)
        )
        row.append(checked.files.sha256.get(path, ''))
        row.append(' | '.join(near_duplicates[path]) if is_used else '')
        rows.append(row)
    # stable: training photos keep the order of their probabilities
    rows.sort(key=lambda row: not row[PHOTO_COLUMNS.index('used')])
    empty = [''] * (len(COLUMNS) - len(PHOTO_COLUMNS))
    for path, reason in list_unused(checked).items():
        rows.append([path, '', '', '', False, reason, *empty])
    rows.insert(0, [*COLUMNS])
    captures = photos.captures
    if any(x.day or x.camera for x in captures.values()):
        for row in rows[1:]:
            capture = captures.get(str(row[0]), Capture())
            row += [capture.day, capture.camera]
        rows[0] += CAPTURE_COLUMNS
    return rows


def list_unused(checked: PhotoCheck) -> dict[str, str]:
    """Return the reasons for unused files by path."""
    unused = checked.photos.unused.items()
    reasons = {path: str(note) for path, note in unused}
    reasons |= checked.unreadable
    for path, kept in checked.duplicates + checked.cross_split_duplicates:
        reasons[path] = f'same as {kept}'
    for paths in checked.conflicting_labels:
        reasons |= dict.fromkeys(paths, 'same photo in several classes')
    return reasons


def describe_prediction(
    photos: LabeledImages, position: int, probabilities: Tensor
) -> list[str]:
    """Return prediction, probability of the label and of the prediction.

    All are empty if the photo was not tested.
    """
    if probabilities.isnan().any():
        return [''] * len(PREDICTION_COLUMNS)
    prediction = int(probabilities.argmax())
    p_label = float(probabilities[photos.labels[position]])
    p_prediction = float(probabilities[prediction])
    return [
        photos.classes[prediction],
        f'{p_label:.6f}',
        f'{p_prediction:.6f}',
    ]
