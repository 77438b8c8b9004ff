# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Probe whether border, ignored patches or file of a photo tell its class."""

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from mmclca.apis.probe import OutOfFold
from mmclca.datasets.batches import Preparation
from mmclca.datasets.decoding import UndecodedError, open_image
from mmclca.datasets.photos import LabeledImages
from mmclca.datasets.photos.captures import Capture
from mmclca.evaluation.conformal import Calibration
from mmclca.evaluation.shortcut_probe import probe_cues, scale_columns
from mmclca.utils.messages import track

from .ignored_patches import read_ignored_patches
from .pictures import upright
from .plan import Plan
from .shortcut_record import Shortcut

MIN_PHOTOS = 20  # fewer are told apart by chance
SIDE, BORDER = 64, 6  # pixels of a shrunk photo
MAX_ATTENDED = 120  # photos that pass through the model, in 3 seconds


def measure_shortcuts(
    plan: Plan, cv: OutOfFold, calibration: Calibration
) -> list[Shortcut]:
    """Probe the training photos without the plant, in the folds of ``cv``.

    Empty for less than ``MIN_PHOTOS`` photos, or if nothing was tested, or a
    photo may not be opened.
    """
    photos, files = plan.training_photos, plan.checked.files
    has_few_photos = len(photos) < MIN_PHOTOS or not cv.splits
    if has_few_photos or not all(map(files.may_open, photos.paths)):
        return []
    splits = cv.splits[: cv.folds]
    shortcuts = probe_photos(photos, calibration.groups, splits)
    if plan.variant.out_type is None:  # no ViT
        return shortcuts
    prepare = Preparation(plan.config)
    shortcut = probe_ignored_patches(
        plan.probe.model, prepare, photos, calibration.groups, splits
    )
    return [*shortcuts, shortcut] if shortcut else shortcuts


def probe_ignored_patches(
    model: Any,
    prepare: Preparation,
    photos: LabeledImages,
    groups: Tensor,
    splits: Sequence[tuple[np.ndarray, np.ndarray]],
) -> Shortcut | None:
    """Probe the patches to which the class token attends least.

    Of more than ``MAX_ATTENDED`` photos, a random part is used, as each
    passes through the model.

    Args:
        model (nn.Module): Classifier whose backbone has a class token.
        prepare (Preparation): Its preprocessing.
        photos (LabeledImages): N photos.
        groups (Tensor): Numbers of their groups (N,).
        splits (Sequence[tuple]): As in :func:`probe_photos`.

    Returns:
        Shortcut | None: None if nothing could be tested.
    """
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(len(photos), generator=generator)
    chosen = order[:MAX_ATTENDED].sort().values
    part = photos.select(chosen.tolist())
    cues = encode(read_ignored_patches(model, prepare, part.paths))
    cuts = [
        (
            np.flatnonzero(np.isin(chosen, train)),
            np.flatnonzero(np.isin(chosen, test)),
        )
        for train, test in splits
    ]
    part_groups = groups[chosen].unique(return_inverse=True)[1]
    return _probe('patches', cues, part, part_groups, cuts)


def probe_photos(
    photos: LabeledImages,
    groups: Tensor,
    splits: Sequence[tuple[np.ndarray, np.ndarray]],
) -> list[Shortcut]:
    """Probe border and file of photos.

    Args:
        photos (LabeledImages): N photos.
        groups (Tensor): Numbers of their groups (N,).
        splits (Sequence[tuple]): Positions of the training and test photos of
            each fold.

    Returns:
        list[Shortcut]: Without cues that are the same for all photos.
    """
    borders = encode(
        [read_border(path) for path in track(photos.paths, 'Shortcuts')]
    )
    captures = [photos.captures.get(x, Capture()) for x in photos.paths]
    pairs = zip(photos.paths, captures, strict=True)
    file_cues = encode([read_file_cues(x, capture) for x, capture in pairs])
    return [
        shortcut
        for shortcut in (
            _probe('border', borders, photos, groups, splits),
            _probe('file', file_cues, photos, groups, splits),
        )
        if shortcut is not None
    ]


def _probe(
    source: Literal['border', 'patches', 'file'],
    cues: Tensor,
    photos: LabeledImages,
    groups: Tensor,
    splits: Sequence[tuple[np.ndarray, np.ndarray]],
) -> Shortcut | None:
    """Probe cues (N, D) of photos; None if nothing could be tested."""
    probed = probe_cues(cues, torch.tensor(photos.labels), groups, splits)
    if probed is None:
        return None
    extremes = find_extremes(cues, photos)
    return Shortcut(source, **vars(probed), extremes=extremes)


def read_border(path: str) -> list[float]:
    """Return quantiles, mean and deviation of the colors at the border.

    Empty if the photo cannot be read.
    """
    with suppress(OSError, UndecodedError):
        image = upright(path).convert('RGB').resize((SIDE, SIDE))
        pixels = np.asarray(image, float)
        inside = np.zeros((SIDE, SIDE), bool)
        inside[BORDER:-BORDER, BORDER:-BORDER] = True
        colors = pixels[~inside]
        quantiles = np.percentile(colors, [10, 50, 90], axis=0)
        return [*quantiles.flat, *colors.mean(0), *colors.std(0)]
    return []


def read_file_cues(path: str, capture: Capture) -> list[float | str]:
    """Return size, JPEG quality, camera and day of a photo."""
    sizes = [0.0, 0.0, 0.0]
    with suppress(OSError, UndecodedError), open(path, 'rb') as file:
        image = open_image(file)
        tables = getattr(image, 'quantization', None) or {}
        sizes = [
            *(math.log(side) for side in image.size),
            sum(map(sum, tables.values())) / 100,
        ]
    return [*sizes, capture.camera, capture.day]


def encode(rows: list[list]) -> Tensor:
    """Return cues (N, D) as numbers; each text is a column of 0 and 1.

    Photos without cues have the mean of the others.
    """
    width = max(map(len, rows))
    columns: list[list[float]] = []
    for i in range(width):
        values = [row[i] if row else None for row in rows]
        names = sorted({x for x in values if isinstance(x, str)})
        if names:
            columns += [[float(x == name) for x in values] for name in names]
        else:
            columns.append([math.nan if x is None else x for x in values])
    cues = torch.tensor(columns, dtype=torch.float64).T
    return torch.where(cues.isnan(), cues.nanmean(0), cues)


def find_extremes(cues: Tensor, photos: LabeledImages) -> list[str]:
    """Return the two classes whose mean cues (N, D) differ most."""
    scaled = scale_columns(cues)
    labels = torch.tensor(photos.labels)
    means = torch.stack([scaled[labels == x].mean(0) for x in labels.unique()])
    pair = int(torch.cdist(means, means).argmax())
    first, second = divmod(pair, len(means))
    names = [photos.classes[label] for label in labels.unique()]
    return [names[first], names[second]]
