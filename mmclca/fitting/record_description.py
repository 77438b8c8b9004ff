# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Describe a fitted model for screen, report and page."""

from collections.abc import Iterator
from dataclasses import dataclass

from mmclca.evaluation.fusion import PlantFigures

from .accuracy_parts import AccuracyDescription
from .record import FitRecord
from .shortcut_record import ShortcutsDescription, describe_shortcuts
from .spread_text import describe_coinciding, describe_needed, describe_spreads
from .wording import Advice, Description, percent

# photos for which accuracy and interval hold
VALIDITY = {
    'test': Description(('new photos like those in val and test',)),
    'days': Description(
        ('new photos taken on other days',),
        'No day was in both training and test.',
    ),
    'groups': Description(
        ('new photos of new groups',),
        'No group was in both training and test.',
    ),
    'sessions': Description(
        (
            'new photos taken on the same days, in the same places and with '
            'the same cameras',
        ),
        'The accuracy on other days, places or cameras is unknown.',
        Advice(
            'to measure it elsewhere, group photos by day or place', '--groups'
        ),
    ),
}


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
        return f'{self.result.summary} on {self.validity.lines[0]}'


def describe_record(record: FitRecord) -> RecordDescription:
    """Describe a record with an accuracy estimate."""
    is_trained = record.final == 'trained'
    training, threshold = record.training, record.threshold
    note = 'linear probe; the fine-tuned model was not measured'
    result, why_unmeasured = record.best.describe(), ''
    if record.best.accuracy is None:
        why_unmeasured = _explain_unmeasured(record)
    elif not record.is_representative:
        why_unmeasured = describe_needed(record)
        result = AccuracyDescription('unknown accuracy', '', (), '')
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
            VALIDITY[find_validity(record)]
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


def find_validity(record: FitRecord) -> str:
    """Return the key in ``VALIDITY`` for the accuracy of a record."""
    if record.test:
        return 'test'
    if record.is_across_days:
        return 'days'
    return 'groups' if record.is_grouped else 'sessions'


def _describe_further_accuracies(record: FitRecord) -> Iterator[str]:
    """Describe accuracies other than the result, and for which photos."""
    probe, best = record.estimate, record.best
    if not record.is_representative:
        yield f'{name_tested(record)}: {best.describe().summary}'
    if record.same_days:
        yield f'on the same days: {record.same_days.describe().summary}'
    if record.plants:
        yield _describe_plants(record.plants)
    if best is probe or probe.accuracy is None:
        return
    method = 'linear probe, cross-validation'
    if record.final == 'trained':
        method = f'before fine-tuning ({method})'
    yield f'{method}: {probe.describe().summary}'


def _describe_plants(figures: PlantFigures) -> str:
    """Describe the accuracy with 1, 2 and so on photos per plant."""
    numbers = ' / '.join(map(str, range(1, len(figures.accuracies) + 1)))
    shares = ' / '.join(f'{100 * share:.0f}' for share in figures.accuracies)
    return (
        f'with {numbers} photos per plant: {shares}% accuracy on '
        f'{figures.plants} plants'
    )


def name_tested(record: FitRecord) -> str:
    """Name the photos on which the linear probe was tested."""
    untested = len(record.untested_classes)
    if untested:
        number = len(record.estimate.per_class)
        return f'on {number - untested} of {number} classes'
    if record.is_across_days:
        return 'on other days'
    coinciding = [f'{x.kind}s' for x in record.photos.coinciding]
    kinds = ' and '.join(coinciding or ['days'])
    return f'on the same {kinds} only'


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
