# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Refit the classifier of a model to other photos or labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from mmclca.checkpoints.gate.photo_table import PhotoRow
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.datasets.photos import LabeledImages, PhotoCheck
from mmclca.datasets.photos.captures import Capture
from mmclca.errors import Error

from . import console_text
from .change_text import describe_classes
from .confirmation import ConfirmationError, check_accuracy
from .fit_folder import FitFolder
from .log import Log
from .plan import make_plan
from .record import FitRecord
from .record_parts import require_part
from .steps import StepRequest, add_latency, run_steps


@dataclass(frozen=True)
class Refit:
    """Change to a model whose backbone stays.

    Args:
        files (FitFolder): Model folder.
        previous (FitRecord): Its record.
        checked (PhotoCheck): Photos of the new model.
        classes (list[str]): Changed classes, for messages.
        is_changed (bool): Whether photos or labels differ. If not, an
            interrupted change is completed.
        force (bool): Whether the accuracy may fall below its interval.
        device (str, optional): Device. Defaults to None: a GPU if available.
    """

    files: FitFolder
    previous: FitRecord
    checked: PhotoCheck
    classes: list[str]
    is_changed: bool
    force: bool
    device: str | None = None

    def run(self, log: Log) -> None:
        """Fit the classifier, and keep the model as the previous one.

        Raises:
            ConfirmationError: If the accuracy falls below its interval. The
                model does not change.
        """
        files, previous = self.files, self.previous
        record = previous.with_photos(self.checked)
        if self.is_changed:
            record = discard_measurements(record)
        files.discard_draft()
        exports = files.list_exports()
        options = replace(record.call.options, device=self.device)
        plan = make_plan(files, record, self.checked, options)
        request = StepRequest(
            check=None if self.force else partial(check_accuracy, previous),
            keep_previous=self.is_changed,
        )
        try:
            record = run_steps(plan, record, log, request)
        except ConfirmationError:
            files.discard_draft()
            raise
        changes = describe_classes(previous, record, self.classes)
        log.print_lines(console_text.format_facts(changes))
        undo = console_text.UNDO_CHANGE if self.is_changed else ''
        console_text.print_saved(log, files.path, exports, undo)
        # missing after an interrupted fit
        if not require_part(record.cost, 'cost').has_latency:
            add_latency(plan, record, log)


def read_undamaged(files: FitFolder) -> FitRecord:
    """Read the record of a model whose weights are not damaged."""
    record = files.read_complete()
    for weights in (files.model, files.probe):
        open_checkpoint(str(weights))  # find damage before any work
    return record


def read_learned(files: FitFolder) -> list[PhotoRow]:
    """Read the photos of a model; raise an ``Error`` without digests."""
    learned = files.read_used_photos()
    if not all(photo.sha256 for photo in learned):
        raise Error(
            f'{files.table}: no digest for some photos; restore the file, or '
            'fit again'
        )
    return learned


def build_images(
    rows: Sequence[PhotoRow], record: FitRecord, learned: Sequence[PhotoRow]
) -> LabeledImages:
    """Convert rows to training photos; classes keep their order.

    Args:
        rows (Sequence[PhotoRow]): Photos of the new model.
        record (FitRecord): Record of the previous model.
        learned (Sequence[PhotoRow]): Photos whose day and camera are known.
    """
    images = LabeledImages.from_names(
        [row.path for row in rows],
        [row.label for row in rows],
        record.photos.source,
        record.photos.classes,
    )
    return replace(
        images,
        groups=[row.group for row in rows] if learned[0].group else None,
        splits=['train'] * len(rows),
        captures={row.path: Capture(row.day, row.camera) for row in learned},
    )


def discard_measurements(record: FitRecord) -> FitRecord:
    """Drop the measurements changed by other photos."""
    training = record.training
    if training is not None:
        training = replace(training, finetune_val=None)
    return replace(record, training=training, probe=None, test=None)
