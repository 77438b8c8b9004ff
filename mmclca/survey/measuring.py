# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Measure a model on new photos with a labeled sample."""

import os
from collections import Counter
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from mmclca.datasets.photos.spellings import normalize_name
from mmclca.errors import Error

from .classify import ClassifiedFolder, classify_folder, resolve_folder
from .estimate import Estimated, Survey, SurveyEstimate, estimate_survey
from .table import LabeledTable, read_survey_table


@dataclass(frozen=True)
class ClassCount:
    """Photos per class in a folder.

    Args:
        name (str): Class; empty for photos without a class.
        estimate (Estimated): Estimated number of photos.
        predicted (int): Photos predicted as the class.
        labeled (int): Photos labeled as the class.
    """

    name: str
    estimate: Estimated
    predicted: int
    labeled: int


@dataclass(frozen=True)
class MeasuredSurvey:
    """Accuracy and class counts in a folder, and the labels behind them.

    Args:
        folder (ClassifiedFolder): Classified photos.
        table (LabeledTable): Labels.
        labels (dict[str, str]): Class by photo.
        other_labels (dict[str, str]): Labels that are not classes, by photo.
        estimate (SurveyEstimate): Accuracy and class counts.
    """

    folder: ClassifiedFolder
    table: LabeledTable
    labels: dict[str, str]
    other_labels: dict[str, str]
    estimate: SurveyEstimate

    @property
    def counts(self) -> list[ClassCount]:
        """Photos per class, at the end without a class."""
        classes = [*self.folder.classes, '']
        predicted = np.bincount(
            self.folder.probabilities.argmax(axis=1), minlength=len(classes)
        )
        labeled = Counter(self.labels.values())
        labeled[''] = len(self.other_labels)
        return [
            ClassCount(name, estimate, int(number), labeled[name])
            for name, estimate, number in zip(
                classes, self.estimate.counts, predicted, strict=True
            )
        ]


def measure_survey(
    model: str | PathLike,
    photos: str | PathLike,
    table: str | PathLike,
    device: str | None = None,
) -> MeasuredSurvey:
    """Estimate accuracy and class counts in a folder from a labeled sample.

    Labels outside the model's classes count as none of the classes.
    Photos without a label are assumed to be missing at random. Photos that
    were not drawn are left out. See :func:`estimate_survey`.

    Args:
        model (str | Path): Model folder.
        photos (str | Path): Folder with new photos, as in :func:`draw_survey`.
        table (str | Path): Table from :func:`draw_survey` with labels.
        device (str, optional): Device. Defaults to None: a GPU if available.

    Returns:
        MeasuredSurvey: Labels and estimate.

    Raises:
        FileNotFoundError: If a folder, the table or a labeled photo is
            missing.
        Error: If the table is not from :func:`draw_survey`, or fewer than
            10 photos have a label.
    """
    labeled_table = read_survey_table(
        Path(os.path.abspath(table)), resolve_folder(photos)
    )
    labeled_table.check()
    folder = classify_folder(model, photos, device)
    return measure_labels(folder, labeled_table)


def measure_labels(
    folder: ClassifiedFolder, table: LabeledTable
) -> MeasuredSurvey:
    """Estimate accuracy and class counts in a classified folder.

    Args:
        folder (ClassifiedFolder): Classified photos.
        table (LabeledTable): Labels.

    Returns:
        MeasuredSurvey: Labels and estimate.

    Raises:
        Error: If a labeled photo is not in the folder.
    """
    position = {path: i for i, path in enumerate(folder.photos)}
    lost = [x.path for x in table.labeled if x.path not in position]
    if lost:
        raise Error(
            f'{table.source}: {lost[0]} has a label but is unreadable, in '
            f'training or not in {folder.path}; give model and folder of '
            'the draw'
        )
    spellings = {normalize_name(x).casefold(): x for x in folder.classes}
    spellings |= {normalize_name(name): name for name in folder.classes}
    labels, other_labels = {}, {}
    for photo in table.labeled:
        name = spellings.get(photo.label)
        name = name or spellings.get(photo.label.casefold())
        if name is None:
            other_labels[photo.path] = photo.label
        else:
            labels[photo.path] = name
    numbers = {name: i for i, name in enumerate(folder.classes)}
    numbered = {path: numbers[name] for path, name in labels.items()}
    numbered |= dict.fromkeys(other_labels, len(folder.classes))
    survey = Survey(
        probabilities=folder.probabilities,
        positions=np.array([position[path] for path in numbered]),
        labels=np.array([*numbered.values()]),
        confusions=folder.confusions,
    )
    estimate = estimate_survey(survey)
    return MeasuredSurvey(folder, table, labels, other_labels, estimate)
