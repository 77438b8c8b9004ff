# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit a model to a folder of photos."""

import os
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

from mmclca.benchmark.timing import find_runtime
from mmclca.datasets.levels import coarse_labels, read_level
from mmclca.datasets.photos import (
    CAPTURE_KINDS,
    check_photos,
    group_by_capture,
    read_photos,
)

from . import console_text
from .choice import choose_plan
from .fit_folder import FitFolder
from .fitted_model import FittedModel
from .log import Step, find_log
from .options import FitKeywords, FitOptions, show_options
from .probing import describe_coarse
from .record import FitCall, FitRecord
from .steps import StepRequest, add_latency, run_steps, skipped_lines

if TYPE_CHECKING:
    from typing_extensions import Unpack


@show_options
def fit(
    photos: str | PathLike,
    out: str | PathLike = 'model',
    **options: 'Unpack[FitKeywords]',
) -> FittedModel:
    """Fit an image classifier to photos and estimate its accuracy.

    First fit a linear probe on the pretrained backbone, in seconds. Then
    fine-tune the backbone if there are enough photos to decide whether this
    helps. The same call resumes an interrupted one.

    Args:
        photos (str | Path): Folder with one folder per class, or with
            such folders in ``train``, ``val`` and ``test``; photos in
            ``val`` and ``test`` are used for testing only. See
            :func:`mmclca.datasets.photos.read_photos`.
        out (str | Path): Folder of the model. Defaults to 'model'.
        **options: Fields of :class:`mmclca.fitting.options.FitOptions`, such
            as ``weights``, ``groups`` and ``fine_tune``.

    Returns:
        FittedModel: The model, ready to predict.

    Raises:
        FileNotFoundError: If photos, table or weights are missing.
        Error: If the photos or options are invalid, ``out`` holds
            another model, or no model is within the budget.
    """
    settings = FitOptions.from_keywords(options)
    if settings.runtime is not None:
        find_runtime(settings.runtime, 'cpu')
    coarse_classes = read_level(settings.coarse) if settings.coarse else None
    folder = os.path.abspath(photos)
    call = FitCall(folder, settings)
    files = FitFolder(out)
    with find_log() as log:
        log.is_verbose |= settings.verbose
        log.begin(Step.CHECK)
        images = read_photos(folder, settings.labels, settings.groups)
        if coarse_classes is not None:
            table = str(settings.coarse)
            coarse_labels(images.classes, coarse_classes, table)
        checked = check_photos(images)
        kind = settings.groups
        if kind in CAPTURE_KINDS and checked.photos.groups is None:
            grouped = group_by_capture(checked.photos, kind)
            checked = replace(checked, photos=grouped)
        if not settings.overwrite:
            files.check_available()
        with files.locked():
            record = FitRecord.from_call(call, checked)
            if not settings.overwrite:
                record = files.find_record(record) or record
            exports = files.list_exports()
            record = replace(
                record,
                name=settings.name or record.name,
                language=settings.language or record.language,
            )
            plan, record = choose_plan(files, record, checked, settings)
            fine_tune = settings.fine_tune or None
            request = StepRequest(
                overwrite=settings.overwrite,
                fine_tune=False if settings.probe_only else fine_tune,
            )
            record = run_steps(plan, record, log, request)
            if coarse_classes is not None:
                log.print(describe_coarse(plan, coarse_classes))
            console_text.print_saved(log, files.path, exports)
            record = add_latency(plan, record, log)
            if not (settings.probe_only or record.training):
                log.add_details(skipped_lines(plan, log))
        if settings.compare:
            log.print_lines(console_text.comparison_lines(plan, record))
    return FittedModel(out, settings.device)
