# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Calibrate prediction sets, and measure their sizes."""

from dataclasses import replace

import torch

from mmclca.apis.probe import OutOfFold
from mmclca.datasets.levels import coarse_labels, read_level
from mmclca.errors import Error
from mmclca.evaluation.calibration_file import (
    HeldOut,
    read_calibration,
    write_calibration,
)
from mmclca.evaluation.conformal import Calibration

from .guarantee import Guarantee
from .plan import Plan
from .record import FitRecord

LEVEL = 95  # percent


def calibrate(plan: Plan, cv: OutOfFold) -> Calibration:
    """Return the calibration by a cross-validated probe."""
    numbers, unit = [*range(len(cv.labels))], 'photo'
    groups = cv.data.groups
    if groups is not None:
        order = {name: i for i, name in enumerate(dict.fromkeys(groups))}
        numbers = [order[name] for name in groups]
    if plan.tests_other_days:
        unit = 'day'
    elif plan.options.groups:
        unit = 'group'
    return Calibration(
        probabilities=cv.probabilities().float().contiguous(),
        labels=cv.labels,
        groups=torch.tensor(numbers),
        unit=unit,
    )


def add_held_out(plan: Plan, held_out: HeldOut) -> None:
    """Add the photos held out from fine-tuning to the stored calibration."""
    files, number = plan.files, len(plan.training_photos.classes)
    path = files.draft.cv_probabilities
    write_calibration(path, read_calibration(files, number), held_out)


def measure_guarantee(plan: Plan, record: FitRecord) -> FitRecord:
    """Return the record with the sizes of prediction sets.

    Coarse classes come from the options, else from an earlier fit.

    Raises:
        Error: If only some classes have a coarse class.
    """
    classes, source = plan.training_photos.classes, plan.options.coarse
    table: dict[str, str] = {}
    if source:
        table = read_level(source)
    elif record.guarantee:
        table = record.guarantee.coarse_classes
        # a class may have been added since
        table = {name: table.get(name, name) for name in classes if table}
    coarse, named = None, {}
    if table:
        coarse, names = coarse_labels(classes, table, source or 'the record')
        pairs = zip(classes, coarse, strict=True)
        named = {name: names[label] for name, label in pairs}
    sizes, problem = None, ''
    try:
        calibration = read_calibration(plan.files, len(classes))
    except Error:  # by an earlier version, or photos added after fine-tuning
        return replace(record, guarantee=None)
    try:
        sizes = calibration.measure_sizes(
            calibration.find_threshold(LEVEL), coarse
        )
    except Error as error:
        problem = str(error)
    return replace(
        record,
        guarantee=Guarantee(
            level=LEVEL,
            unit=calibration.unit,
            number=calibration.independent,
            sizes=sizes,
            problem=problem,
            coarse_classes=named,
        ),
    )
