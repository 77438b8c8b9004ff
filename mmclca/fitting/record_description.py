# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Describe a fitted model for screen, report and page."""

from collections.abc import Iterator
from dataclasses import dataclass

from .accuracy_parts import AccuracyDescription
from .record import FitRecord
from .wording import Advice, Description, percent


@dataclass(frozen=True)
class RecordDescription:
    """Description of a fitted model.

    Args:
        result (AccuracyDescription): Accuracy to expect.
        note (str): Why it is not that of the saved model; else empty.
        why_unmeasured (str): What is missing to measure the accuracy; empty
            if it was measured.
        further_accuracies (tuple[str, ...]): Accuracies by other methods.
        class_sizes (Description): Effect if classes are uneven.
        near_duplicates (Description): Near-duplicates, if any.
        validity (Description): Photos for which the accuracy holds.
        threshold (Description): Threshold for unknown classes.
        fine_tuning (str): Result of the fine-tuning; empty without any.
    """

    result: AccuracyDescription
    note: str
    why_unmeasured: str
    further_accuracies: tuple[str, ...]
    class_sizes: Description
    near_duplicates: Description
    validity: Description
    threshold: Description
    fine_tuning: str

    @property
    def claim(self) -> str:
        """Accuracy and photos for which it holds; empty if not measured."""
        if not self.result.plain:
            return ''
        return f'{self.result.summary} on {self.validity.lines[0]}'


def describe_record(record: FitRecord) -> RecordDescription:
    """Describe a record with an accuracy estimate."""
    is_trained = record.final == 'trained'
    training, threshold = record.training, record.threshold
    note = 'linear probe; the fine-tuned model was not measured'
    is_measured = record.best.accuracy is not None
    return RecordDescription(
        result=record.best.describe(),
        note='' if record.is_measured else note,
        why_unmeasured='' if is_measured else _explain_unmeasured(record),
        further_accuracies=tuple(_describe_further_accuracies(record)),
        class_sizes=_describe_class_sizes(record),
        near_duplicates=record.photos.describe_near_duplicates(),
        validity=_describe_validity(record),
        threshold=threshold.describe() if threshold else Description(),
        fine_tuning=training.describe(is_trained) if training else '',
    )


def _describe_validity(record: FitRecord) -> Description:
    """Describe the photos for which accuracy and interval hold."""
    if record.test:
        return Description(('new photos like those in val and test',))
    if record.is_grouped:
        return Description(
            ('new photos of new groups',),
            'No group was in both training and test.',
        )
    return Description(
        (
            'new photos taken on the same days, in the same places and with '
            'the same cameras',
        ),
        'The accuracy on other days, places or cameras is unknown.',
        Advice(
            'to measure it elsewhere, group photos by day or place', '--groups'
        ),
    )


def _describe_further_accuracies(record: FitRecord) -> Iterator[str]:
    """Describe the linear probe unless it is the result."""
    probe = record.estimate
    if record.best is probe or probe.accuracy is None:
        return
    method = 'linear probe, cross-validation'
    if record.final == 'trained':
        method = f'before fine-tuning ({method})'
    yield f'{method}: {probe.describe().summary}'


def _describe_class_sizes(record: FitRecord) -> Description:
    """Describe the macro recall if it was measured and classes are uneven."""
    recall = record.estimate.macro_recall
    if recall is None or not record.is_uneven:
        return Description()
    counts = [n for n in record.photos.counts.values() if n]
    advice = Advice('to weight classes equally', '--class-weights balanced')
    is_weighted = record.call.options.class_weights is not None
    return Description(
        (f'macro recall {percent(recall)}',),
        f'Classes differ in size: the largest has {max(counts)} photos, the '
        f'smallest {min(counts)}. Large classes dominate the accuracy; the '
        'macro recall is the mean over classes.',
        None if is_weighted else advice,
    )


def _explain_unmeasured(record: FitRecord) -> str:
    """Return what is missing to test any class: photos, or groups."""
    if record.is_grouped:
        return 'each class has one group; add or name a second one'
    if max(record.photos.counts.values()) > 1:
        return 'all photos of a class are near-duplicates; add others'
    return 'add a second photo to each class'
