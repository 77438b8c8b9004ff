# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write and read cv_probabilities.safetensors in a model folder.

Its tensors have one row per training photo, ordered as in photographs.csv:
``probabilities`` (N, K), NaN if a photo was not tested, ``labels`` (N,) and
``groups`` (N,). If the fine-tuned model was kept, ``held_out`` (M,) are the
positions where photos were held out, and ``held_out_probabilities`` (M, K)
come from a model fine-tuned without them.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor

from mmclca.checkpoints import checksums
from mmclca.checkpoints.gate.folders import read_file
from mmclca.checkpoints.model_folder import (
    CV_PROBABILITIES,
    ModelFolder,
    damaged_file_errors,
)
from mmclca.errors import Error
from mmclca.utils.files import replace_bytes

from .conformal import UNITS, Calibration

AGAIN = 'fit again with `overwrite=True`'


@dataclass(frozen=True)
class HeldOut:
    """Photos held out from fine-tuning.

    Args:
        positions (Tensor): Positions among the training photos (M,).
        probabilities (Tensor): Class probabilities (M, K) by a model
            fine-tuned without them.
    """

    positions: Tensor
    probabilities: Tensor

    def calibrate(self, calibration: Calibration) -> Calibration:
        """Replace a calibration by cross-validation."""
        return replace(
            calibration,
            probabilities=self.probabilities,
            labels=calibration.labels[self.positions],
            groups=calibration.groups[self.positions],
        )


def write_calibration(
    path: Path, calibration: Calibration, held_out: HeldOut | None = None
) -> None:
    """Write calibrations by cross-validation and by held-out photos."""
    tensors = dict(
        probabilities=calibration.probabilities,
        labels=calibration.labels,
        groups=calibration.groups,
    )
    if held_out is not None:
        tensors['held_out'] = held_out.positions
        tensors['held_out_probabilities'] = held_out.probabilities
    metadata = dict(unit=calibration.unit)
    replace_bytes(path, checksums.save_tensors(tensors, metadata))


def read_calibration(folder: ModelFolder, num_classes: int) -> Calibration:
    """Read the calibration for the model in a folder.

    Args:
        folder (ModelFolder): The folder.
        num_classes (int): Class count in the model.

    Raises:
        Error: If the file is missing, damaged, a link or from an earlier
            version, or if photos were added after fine-tuning.
    """
    path = folder.cv_probabilities
    try:
        content = read_file(folder.path, CV_PROBABILITIES)
    except FileNotFoundError:
        raise Error(
            f'{path} is missing, without which nothing is guaranteed; {AGAIN}'
        ) from None
    with damaged_file_errors(path, SafetensorError, Error):
        tensors, metadata = checksums.load_tensors(content)
    if 'groups' not in tensors:
        raise Error(
            f'{path} is of an earlier version, which guarantees nothing; '
            f'{AGAIN}'
        )
    with damaged_file_errors(path, Error):
        calibration = _parse(tensors, metadata, num_classes)
    is_trained = folder.read_record().get('final') == 'trained'
    if is_trained and 'held_out' not in tensors:
        raise Error(
            f'{folder.path}: photos were added after fine-tuning, so that '
            f'nothing is guaranteed; {AGAIN}'
        )
    return calibration


def _parse(
    tensors: dict[str, Tensor], metadata: dict[str, str], num_classes: int
) -> Calibration:
    """Check all values, and select those for the saved model.

    Raises:
        Error: If a tensor is missing or has a wrong shape or value.
    """
    unit = metadata.get('unit', '')
    if unit not in UNITS:
        raise Error(f'unit is {unit!r:.40}')
    names = ('probabilities', 'labels', 'groups')
    if missing := [name for name in names if name not in tensors]:
        raise Error(f'{missing[0]} is missing')
    probabilities, labels, groups = (tensors[name] for name in names)
    number = len(labels)
    _check_probabilities(probabilities, (number, num_classes))
    _check_indices(labels, number, num_classes)
    _check_indices(groups, number, number)
    calibration = Calibration(probabilities, labels, groups, unit)
    if 'held_out' not in tensors:
        return calibration
    positions = tensors['held_out']
    _check_indices(positions, len(positions), number)
    held_out = tensors.get('held_out_probabilities', torch.empty(0))
    _check_probabilities(held_out, (len(positions), num_classes))
    return HeldOut(positions, held_out).calibrate(calibration)


def _check_probabilities(values: Tensor, shape: tuple[int, int]) -> None:
    if values.shape != shape or not values.is_floating_point():
        raise Error(f'found probabilities {tuple(values.shape)}, not {shape}')
    tested = values[~values.isnan().any(1)]
    if not ((tested >= 0) & (tested <= 1)).all():
        raise Error('probabilities are not within 0 to 1')
    if not (tested.amax(1) > 0).all():
        raise Error('all probabilities of a photo are 0')


def _check_indices(values: Tensor, number: int, end: int) -> None:
    is_integer = values.shape == (number,) and values.dtype == torch.int64
    if not (is_integer and ((values >= 0) & (values < end)).all()):
        raise Error(f'expected {number} integers below {end}')
