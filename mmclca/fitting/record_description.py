# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Describe a fitted model for screen, report and page."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mmclca.evaluation.fusion import PlantFigures
from mmclca.languages import text

from .accuracy_parts import AccuracyDescription
from .record import FitRecord
from .shortcut_record import ShortcutsDescription, describe_shortcuts
from .spread_text import (
    describe_coinciding,
    describe_needed,
    describe_spreads,
    join_kinds,
)
from .wording import Advice, Description, percent

Validity = Literal['test', 'days', 'groups', 'sessions']


@dataclass(frozen=True)
class RecordDescription:
    """Description of a fitted model.

    Args:
        result (AccuracyDescription): Accuracy to expect.
        note (str): Why it is not that of the saved model; else empty.
        why_unmeasured (str): What is missing to measure an accuracy that may
            hold for new photos; empty if it was measured.
        coinciding (Description): Days, cameras or folders that coincide with
            classes, if any.
        spreads (dict[str, tuple[str, ...]]): Days and named groups by title.
        further_accuracies (tuple[str, ...]): Accuracies by other methods.
        class_sizes (Description): Effect if classes are uneven.
        near_duplicates (Description): Near-duplicates, if any.
        validity (Description): Photos for which the accuracy holds.
        threshold (Description): Threshold for unknown classes.
        shortcuts (ShortcutsDescription): Facts that tell the classes without
            a look at the plant, if any.
        guarantee (Description): Sizes of prediction sets.
        fine_tuning (str): Result of the fine-tuning; empty without any.
    """

    result: AccuracyDescription
    note: str
    why_unmeasured: str
    coinciding: Description
    spreads: dict[str, tuple[str, ...]]
    further_accuracies: tuple[str, ...]
    class_sizes: Description
    near_duplicates: Description
    validity: Description
    threshold: Description
    shortcuts: ShortcutsDescription
    guarantee: Description
    fine_tuning: str

    @property
    def claim(self) -> str:
        """Accuracy and photos for which it holds; empty if not measured."""
        if not self.result.plain:
            return ''
        return text(
            'model.claim',
            accuracy=self.result.summary,
            photos=self.validity.lines[0],
        )


def describe_record(record: FitRecord) -> RecordDescription:
    """Describe a record with an accuracy estimate."""
    is_trained = record.final == 'trained'
    training, threshold = record.training, record.threshold
    note = text('model.probe_measured')
    result, why_unmeasured = record.best.describe(), ''
    if record.best.accuracy is None:
        why_unmeasured = _explain_unmeasured(record)
    elif not record.is_representative:
        why_unmeasured = describe_needed(record)
        result = AccuracyDescription(text('model.no_accuracy'), '', (), '')
    return RecordDescription(
        result=result,
        note='' if record.is_measured or why_unmeasured else note,
        why_unmeasured=why_unmeasured,
        coinciding=describe_coinciding(record),
        spreads=describe_spreads(record),
        further_accuracies=tuple(_describe_further_accuracies(record)),
        class_sizes=_describe_class_sizes(record),
        near_duplicates=record.photos.describe_near_duplicates(),
        validity=(
            describe_validity(find_validity(record))
            if record.is_representative
            else Description()
        ),
        threshold=threshold.describe() if threshold else Description(),
        shortcuts=describe_shortcuts(record.suspicious_shortcuts),
        guarantee=(
            record.guarantee.describe()
            if record.guarantee and record.is_representative
            else Description()
        ),
        fine_tuning=training.describe(is_trained) if training else '',
    )


def find_validity(record: FitRecord) -> Validity:
    """Return for which photos the accuracy of a record holds."""
    if record.test:
        return 'test'
    if record.is_across_days or record.call.options.groups == 'day':
        return 'days'
    return 'groups' if record.is_grouped else 'sessions'


def describe_validity(validity: Validity) -> Description:
    """Describe the photos for which accuracy and interval hold."""
    lines = (text(f'model.valid_{validity}'),)
    if validity == 'test':
        return Description(lines)
    details = text(f'model.valid_{validity}_explained')
    if validity == 'sessions':
        advice = Advice(text('model.group_days'), '--groups')
        return Description(lines, details, advice)
    return Description(lines, details)


def _describe_further_accuracies(record: FitRecord) -> Iterator[str]:
    """Describe accuracies other than the result, and for which photos."""
    probe, best = record.estimate, record.best
    if not record.is_representative:
        yield text(
            'model.further',
            method=name_tested(record),
            accuracy=best.describe().summary,
        )
    if record.same_days:
        yield text(
            'model.further',
            method=text('model.on_same_days'),
            accuracy=record.same_days.describe().summary,
        )
    if record.plants:
        yield _describe_plants(record.plants)
    if best is probe or probe.accuracy is None:
        return
    is_trained = record.final == 'trained'
    yield text(
        'model.further',
        method=text('model.before_training' if is_trained else 'model.probe'),
        accuracy=probe.describe().summary,
    )


def _describe_plants(figures: PlantFigures) -> str:
    """Describe the accuracy with 1, 2 and so on photos per plant."""
    numbers = ' / '.join(map(str, range(1, len(figures.accuracies) + 1)))
    shares = ' / '.join(f'{100 * share:.0f}' for share in figures.accuracies)
    return text(
        'model.plants', numbers=numbers, shares=shares, plants=figures.plants
    )


def name_tested(record: FitRecord) -> str:
    """Name the photos on which the linear probe was tested."""
    untested = len(record.untested_classes)
    if untested:
        number = len(record.estimate.per_class)
        return text(
            'model.on_classes', tested=number - untested, number=number
        )
    if record.is_across_days:
        return text('model.on_other_days')
    return text('model.on_same', kinds=join_kinds(record.photos.coinciding))


def _describe_class_sizes(record: FitRecord) -> Description:
    """Describe the macro recall if it was measured and classes are uneven."""
    recall = record.estimate.macro_recall
    if recall is None or not record.is_uneven:
        return Description()
    counts = [n for n in record.photos.counts.values() if n]
    advice = Advice(text('model.weight_classes'), '--class-weights balanced')
    is_weighted = record.call.options.class_weights is not None
    return Description(
        (text('model.macro_recall', share=percent(recall)),),
        text('model.class_sizes', largest=max(counts), smallest=min(counts)),
        None if is_weighted else advice,
    )


def _explain_unmeasured(record: FitRecord) -> str:
    """Return what is missing to test any class: photos, or groups."""
    if record.is_grouped:
        return text('model.one_group')
    if max(record.photos.counts.values()) > 1:
        return text('model.all_near_duplicates')
    return text('model.one_photo')
