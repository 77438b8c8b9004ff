# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tested photos in the report: recalls, confusions, label errors."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmclca.checkpoints.gate.photo_table import PhotoRow
from mmclca.errors import Error
from mmclca.languages import text
from mmclca.visualization.confusions import Predictions, most_confused

from .accuracy_parts import ClassRecall
from .pictures import Pictures
from .shortcut_record import Shortcut
from .wording import is_table

MAX_PAIRS = 6
PER_GROUP = 3


@dataclass(frozen=True)
class TestedPhoto:
    """Photo with a cross-validated prediction.

    Args:
        path (str): The photo.
        label (str): Name of its class.
        prediction (str): Name of the predicted class.
        p_label (float): Probability of the label.
        p_prediction (float): Probability of the prediction.
    """

    __test__ = False  # not a class of tests
    path: str
    label: str
    prediction: str
    p_label: float
    p_prediction: float

    @property
    def name(self) -> str:
        """Folder and file name."""
        return str(Path(*Path(self.path).parts[-2:]))

    @property
    def is_correct(self) -> bool:
        """Whether the prediction is the label."""
        return self.prediction == self.label


def list_tested_photos(
    photos: Sequence[PhotoRow], classes: Sequence[str]
) -> list[TestedPhoto]:
    """List the tested photos; a class with one photo is not tested.

    Raises:
        Error: If a class is not in ``classes``.
    """
    tested = []
    for photo in photos:
        names = {photo.label, photo.prediction or photo.label}
        if not names <= {*classes}:
            raise Error(f'{photo.path} has a class that is not in fit.json')
        p_label = photo.label_probability
        p_prediction = photo.prediction_probability
        if p_label is not None and p_prediction is not None:
            tested.append(
                TestedPhoto(
                    photo.path,
                    photo.label,
                    photo.prediction,
                    p_label,
                    p_prediction,
                )
            )
    return tested


def list_wrong_photos(tested: Sequence[TestedPhoto]) -> list[TestedPhoto]:
    """List the misclassified photos, the least probable label first."""
    wrong = [photo for photo in tested if not photo.is_correct]
    return sorted(wrong, key=lambda photo: photo.p_label)


def list_added_classes(
    photos: Sequence[PhotoRow], *sources: str | None
) -> list[str]:
    """List the classes with photos from outside the sources of a fit.

    Sources are folders and tables; the latter stand for their folder. If they
    contain no photo at all, as a table lists photos elsewhere, none is known
    to be added.
    """
    folders = (os.path.dirname(x) if is_table(x) else x for x in sources if x)
    prefixes = tuple(os.path.join(folder, '') for folder in folders)
    outside = [x.label for x in photos if not x.path.startswith(prefixes)]
    return [] if len(outside) == len(photos) else sorted({*outside})


@dataclass(frozen=True)
class RecallSection:
    """Names and recalls of measured classes, and all other names."""

    measured: list[tuple[str, ClassRecall]]
    unmeasured: list[str]


def build_recall_section(per_class: dict[str, ClassRecall]) -> RecallSection:
    """List the classes by recall, lowest first."""
    measured = [x for x in per_class.items() if x[1].recall is not None]
    measured.sort(key=lambda x: (x[1].recall, x[1].high, x[0]))
    return RecallSection(
        measured, [name for name, x in per_class.items() if x.recall is None]
    )


@dataclass(frozen=True)
class ConfusionCount:
    """How many photos of a class are misclassified as another one."""

    label: str
    prediction: str
    errors: int
    photos: int


@dataclass(frozen=True)
class ConfusedPair:
    """Two confused classes.

    Args:
        first (str): Class that is misclassified more often.
        second (str): The other class.
        counts (list[ConfusionCount]): Errors per direction.
        groups (list[tuple[str, list[dict]]]): Titles and pictures.
    """

    first: str
    second: str
    counts: list[ConfusionCount]
    groups: list[tuple[str, list[dict[str, Any]]]]


def find_confused_pairs(
    tested: Sequence[TestedPhoto], classes: list[str], pictures: Pictures
) -> list[ConfusedPair]:
    """Find the most confused pairs of classes."""
    predictions = Predictions(
        [photo.path for photo in tested],
        np.array([classes.index(x.label) for x in tested], int),
        np.array([classes.index(x.prediction) for x in tested], int),
        classes,
    )
    pairs = most_confused(predictions.matrix(), MAX_PAIRS)
    return [
        _describe_pair(predictions, pictures, first, second)
        for first, second in pairs
    ]


def _describe_pair(
    predictions: Predictions, pictures: Pictures, a: int, b: int
) -> ConfusedPair:
    """Describe the confusions between the classes ``a`` and ``b``."""
    matrix = predictions.matrix()
    first, second = predictions.classes[a], predictions.classes[b]
    counts = [
        ConfusionCount(first, second, matrix[a, b], matrix[a].sum()),
        ConfusionCount(second, first, matrix[b, a], matrix[b].sum()),
    ]
    paths_by_title = {
        _title_photos(first): predictions.classified_as(a, a),
        _title_photos(first, second): predictions.classified_as(a, b),
        _title_photos(second, first): predictions.classified_as(b, a),
        _title_photos(second): predictions.classified_as(b, b),
    }
    groups = [
        (title, [pictures.thumbnail(x, title) for x in paths[:PER_GROUP]])
        for title, paths in paths_by_title.items()
        if paths
    ]
    counts = [count for count in counts if count.errors]
    return ConfusedPair(first, second, counts, groups)


def _title_photos(label: str, prediction: str = '') -> str:
    if not prediction:
        return text('report.correct', label=label)
    return text('report.wrong', label=label, prediction=prediction)


@dataclass(frozen=True)
class ShortcutSection:
    """Warnings about the same two extreme classes, and photos."""

    warnings: list[str]
    groups: list[tuple[str, list[dict[str, Any]]]]


def build_shortcut_sections(
    shortcuts: Sequence[Shortcut],
    tested: Sequence[TestedPhoto],
    pictures: Pictures,
) -> list[ShortcutSection]:
    """Show the first photos of the two most different classes."""
    warnings: dict[tuple[str, ...], list[str]] = {}
    for shortcut in shortcuts:
        pair = tuple(sorted(shortcut.extremes))
        warnings.setdefault(pair, []).append(shortcut.describe())
    sections = []
    for pair, lines in warnings.items():
        groups = []
        for name in pair:
            paths = [photo.path for photo in tested if photo.label == name]
            thumbnails = [
                pictures.thumbnail(path, name) for path in paths[:PER_GROUP]
            ]
            groups.append((name, thumbnails))
        sections.append(ShortcutSection(lines, groups))
    return sections
